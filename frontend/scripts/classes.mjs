/**
 * The app's own CSS classes: where each is written and who uses it. `npm run classes` writes `src/styles/CLASSES.md`;
 * `src/styles/classes.test.ts` holds it to the files and finds classes that nobody uses.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LIST = "src/styles/CLASSES.md";
/** Classes that others give: lucide-react its icons. */
const FOREIGN = /^lucide(?:-|$)/;

function* files(dir, ending) {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) yield* files(path, ending);
    else if (ending.test(entry.name)) yield path;
  }
}

const read = (path) => readFileSync(path, "utf8");
const short = (path) => relative(join(ROOT, "src"), path);

/** `Map` of class name → the style sheets that write it, in their order. */
function written() {
  const found = new Map();
  for (const path of [...files(join(ROOT, "src/styles"), /\.css$/), ...files(join(ROOT, "src/app"), /\.css$/)]) {
    const rules = read(path)
      .replace(/\/\*[\s\S]*?\*\//g, "")
      .matchAll(/([^{};]+)\{/g);
    for (const [, selector] of rules) {
      if (selector.trim().startsWith("@")) continue;
      for (const [, name] of selector.matchAll(/\.(-?[a-zA-Z_][\w-]*)/g)) {
        if (FOREIGN.test(name)) continue;
        found.set(name, new Set([...(found.get(name) ?? []), short(path)]));
      }
    }
  }
  return found;
}

/** The words of all strings in a source. Names may be put together (`shade-${n}`): then what stands before it counts. */
const wordsOf = (source) =>
  new Set([...source.matchAll(/"[^"\n]*"|`[^`]*`/g)].flatMap(([text]) => text.slice(1, -1).split(/[\s"'`]+/)));
const isUsed = (name, words) =>
  words.has(name) || [...words].some((word) => name.startsWith(/^[a-z]+-(?=\$\{)/.exec(word)?.[0] ?? " "));

export function classes() {
  const sources = [...files(join(ROOT, "src"), /(?<!\.test)\.tsx?$/), join(ROOT, "index.html")]
    .filter((path) => !/[\\/](?:types|testing|messages)[\\/]/.test(path))
    .sort()
    .map((path) => [short(path), wordsOf(read(path))]);
  return [...written()]
    .map(([name, sheets]) => ({
      name,
      sheets: [...sheets],
      users: sources.filter(([, words]) => isUsed(name, words)).map(([path]) => path),
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** The list as it stands in `CLASSES.md`: by style sheet, each class where it is written first. */
export function list() {
  const sheets = new Map();
  for (const entry of classes()) {
    const home = entry.sheets[0];
    sheets.set(home, [...(sheets.get(home) ?? []), entry]);
  }
  const line = ({ name, sheets: [, ...also], users }) => {
    const who = users.length > 3 ? `${users.length} files` : users.map((path) => `\`${path}\``).join(", ");
    return `- \`${name}\`: ${who}${also.length ? ` (also in ${also.join(", ")})` : ""}`;
  };
  const parts = [...sheets]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([sheet, entries]) => `## ${sheet}\n\n${entries.map(line).join("\n")}\n`);
  return [
    "# The app's own classes\n",
    "Everything that Tailwind's utilities do not say: where each class is written, and who uses it. Written by `npm run classes`.\n",
    ...parts,
  ].join("\n");
}

export const kept = () => read(join(ROOT, LIST));

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(join(ROOT, LIST), list());
