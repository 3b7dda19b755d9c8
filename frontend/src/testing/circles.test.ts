import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

/** The linter finds import cycles (`import/no-cycle`), but not those closed by a lazy `import()`. */
const root = resolve(import.meta.dirname, "..");

const sources = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && !/\.(test|d)\.tsx?$/.test(file))
  .map((file) => join(root, file));
const known = new Set(sources);

/** The file of ours that `from` means by `name`. */
function found(from: string, name: string): string | undefined {
  const path = name.startsWith("@/")
    ? join(root, name.slice(2))
    : name.startsWith(".")
      ? join(dirname(from), name)
      : "";
  return ["", ".ts", ".tsx", "/index.ts", "/index.tsx"].map((end) => path + end).find((file) => known.has(file));
}

/** The imports of a file, lazy or not, without types, which do not exist at run time. */
function importsOf(text: string): string[] {
  const ways = [/^(?:import|export)(?! type\b)(?:[^;"]* from)? "([^"]+)";/gm, /(?<!typeof )\bimport\("([^"]+)"\)/g];
  return ways.flatMap((way) => [...text.matchAll(way)].map((match) => match[1] ?? ""));
}

/** Each cycle of a graph once, as its path. */
function circles(edges: Map<string, string[]>): string[][] {
  const done = new Set<string>();
  const around: string[][] = [];
  const visit = (file: string, way: string[]) => {
    const at = way.indexOf(file);
    if (at >= 0) {
      around.push([...way.slice(at), file]);
      return;
    }
    if (done.has(file)) return;
    for (const next of edges.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of edges.keys()) visit(file, []);
  return around;
}

test("no files import each other in a cycle, including lazy imports", () => {
  const edges = new Map(
    sources.map((file) => [
      file,
      importsOf(readFileSync(file, "utf8"))
        .map((name) => found(file, name))
        .filter((other) => other !== undefined),
    ]),
  );
  expect([...edges.values()].flat().length).toBeGreaterThan(sources.length);
  const named = circles(edges).map((way) => way.map((file) => relative(root, file)).join(" → "));
  expect(named).toEqual([]);
});

test("a cycle is found whichever file closes it", () => {
  expect(
    importsOf(
      'import { a } from "./a";\nimport type { B } from "./b";\nconst c = () => import("./c");\ntype D = typeof import("./d").d;',
    ),
  ).toEqual(["./a", "./c"]);
  const edges = new Map([
    ["a", ["b", "d"]],
    ["b", ["c"]],
    ["c", ["a"]],
    ["d", ["c"]],
  ]);
  expect(circles(edges)).toEqual([["a", "b", "c", "a"]]);
  expect(
    circles(
      new Map([
        ["a", ["b"]],
        ["b", []],
      ]),
    ),
  ).toEqual([]);
});
