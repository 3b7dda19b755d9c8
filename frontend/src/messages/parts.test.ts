import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, it } from "vitest";
import { partOf, type Part } from "./parts";

const root = resolve(import.meta.dirname, "..");
const files = new Set(
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(root, file)),
);

/** The file of ours that `from` imports as `name`. */
const found = (from: string, name: string) => {
  const path = name.startsWith("@/") ? join(root, name.slice(2)) : join(dirname(from), name);
  return ["", ".ts", ".tsx", "/index.ts"].map((end) => path + end).find((file) => files.has(file));
};

/** The features whose words load with a file and all that it imports, not lazily. */
function wordsOf(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) return [];
  seen.add(file);
  const feature = /^messages\/en\/(\w+)\.ts$/.exec(relative(root, file))?.[1];
  if (feature) return [feature];
  const imported = [
    ...readFileSync(file, "utf8").matchAll(/^(?:import|export)(?! type\b)(?:[^;"]* from)? "([@.][^"]+)";/gm),
  ];
  return imported.flatMap(([, name = ""]) => {
    const next = found(file, name);
    return next ? wordsOf(next, seen) : [];
  });
}

const table = readFileSync(join(root, "app/routes/public.ts"), "utf8");
const routes = [...table.matchAll(/import\("\.\/(public\/[\w-]+)"\)[^}]*words: "(ask|first)"/g)].map(
  ([, name = "", part]) => [name, part as Part] as const,
);

/** Features that a file reads words of, and that come after `part`. */
function later(file: string, part: Part): string[] {
  const there: readonly Part[] = part === "ask" ? ["ask"] : ["ask", "first"];
  return [...new Set(wordsOf(join(root, file)))].filter((feature) => !there.includes(partOf(`${feature}.`)));
}

it("finds the request form among the pages that do not wait for all words", () => {
  expect(routes).toContainEqual(["public/request-form", "ask"]);
  expect(routes).toContainEqual(["public/home", "first"]);
  expect(wordsOf(join(root, "app/routes/public/request-form.tsx"))).toContain("requestForm");
});

it.each(routes)("%s reads only words that come with '%s'", (route, part) => {
  expect(later(`app/routes/${route}.tsx`, part)).toEqual([]);
});

it("the header, footer and session around these pages do, too", () => {
  for (const file of ["app/layouts/site.tsx", "features/session/session-provider.tsx", "app/layouts/data.tsx"])
    expect([file, later(file, "ask")]).toEqual([file, []]);
});

it("the rest of the request form waits for the part 'first' and reads no words beyond it", () => {
  expect(later("features/request-form/components/whole-form.tsx", "first")).toEqual([]);
  expect(later("features/request-form/components/account-match.tsx", "first")).toEqual([]);
});
