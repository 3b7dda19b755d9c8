import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, it } from "vitest";
import { FIRST } from "./parts";

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
const routes = [...table.matchAll(/import\("\.\/(public\/[\w-]+)"\)[^}]*firstWords: true/g)].map(
  ([, name]) => name ?? "",
);

it("finds the request form among the pages that do not wait for all words", () => {
  expect(routes).toContain("public/request-form");
  expect(wordsOf(join(root, "app/routes/public/request-form.tsx"))).toContain("requestForm");
});

it.each([...routes, "public/home"])("%s reads only words that come first", (route) => {
  const words = [...new Set(wordsOf(join(root, `app/routes/${route}.tsx`)))];
  expect(words.filter((feature) => !FIRST.includes(feature))).toEqual([]);
});

it("the header, footer and session around these pages do, too", () => {
  const words = ["app/layouts/site.tsx", "features/session/session-provider.tsx", "app/layouts/data.tsx"].flatMap(
    (file) => wordsOf(join(root, file)),
  );
  expect(words.filter((feature) => !FIRST.includes(feature))).toEqual([]);
});
