/**
 * Writes the markup of entry pages into dist/index.html, in `#root` until the app replaces it. Also writes the file
 * names of these pages' code for `public/theme.js`, which preloads them.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const folder = fileURLToPath(new URL("../node_modules/.prerender/", import.meta.url));
await build({
  root: fileURLToPath(new URL("..", import.meta.url)),
  logLevel: "warn",
  build: {
    ssr: "src/prerender.tsx",
    outDir: folder,
    emptyOutDir: true,
    copyPublicDir: false,
    manifest: false,
    rolldownOptions: { output: { codeSplitting: true } },
  },
});
const { landings } = await import(`${folder}prerender.js`);
rmSync(folder, { recursive: true, force: true });

const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
function filesOf(key, files = new Set()) {
  const chunk = manifest[key];
  if (!chunk || files.has(chunk.file)) return files;
  files.add(chunk.file);
  for (const imported of chunk.imports ?? []) filesOf(imported, files);
  return files;
}
const entry = filesOf(Object.keys(manifest).find((key) => manifest[key].isEntry));
const layout = filesOf("src/app/layouts/data.tsx");
const screens = { home: "home", ask: "request-form", login: "login", lookup: "request-status" };
/** Outside of the layout of pages that read the server's data. */
const bare = new Set(["home", "ask"]);
const files = Object.fromEntries(
  Object.entries(screens).map(([name, screen]) => {
    const own = filesOf(`src/app/routes/public/${screen}.tsx`);
    if (own.size === 0) throw new Error(`${screen} has no file of its own`);
    const all = bare.has(name) ? own : new Set([...layout, ...own]);
    return [name, [...all].filter((file) => !entry.has(file)).map((file) => `/${file}`)];
  }),
);
// of who comes back to answers, to a draft or to the single page
files.form = [...filesOf("src/features/request-form/components/whole-form.tsx")]
  .filter((file) => !entry.has(file) && !files.ask.includes(`/${file}`))
  .map((file) => `/${file}`);

const page = new URL("index.html", dist);
const html = readFileSync(page, "utf8");
function put(text, from, to) {
  if (!text.includes(from)) throw new Error(`dist/index.html has no ${from}`);
  return text.replace(from, () => to);
}
const withPages = put(html, '<div id="root"></div>', `<div id="root">${landings()}</div>`);
writeFileSync(
  page,
  put(
    withPages,
    '<script src="/theme.js">',
    `<script src="/theme.js" data-files="${JSON.stringify(files).replaceAll('"', "&quot;")}">`,
  ),
);
console.log(`in dist/index.html stand: ${Object.keys(screens).join(", ")}`);
