import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { t } from ".";
import { define, fill, find } from "./catalogue";

function* sources(dir: string): Generator<string> {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) yield* sources(path);
    else if (/\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name)) yield path;
  }
}

/** Texts that no page loads in English, because the database's own are shown. */
const FOREIGN_ONLY = ["names", "refusals", "notification", "mail"];

const src = join(import.meta.dirname, "..");

describe("the catalogue", () => {
  it("fills parameters and leaves unknown places alone", () => {
    expect(fill("{a} and {b}", { a: 1 })).toBe("1 and {b}");
  });

  it("chooses the plural form by count", () => {
    expect(t("common.minutesAgo", { count: 1 })).toBe("1 minute ago");
    expect(t("common.minutesAgo", { count: 5 })).toBe("5 minutes ago");
  });

  it("throws for a key whose words were never loaded", () => {
    define("catalogueTest", { known: "yes" });
    expect(find("catalogueTest.known")).toBe("yes");
    expect(() => find("catalogueTest.unknown")).toThrow("no message 'catalogueTest.unknown'");
  });
});

describe("each source file", () => {
  for (const path of sources(src)) {
    const code = readFileSync(path, "utf8");
    const used = new Set(
      [...code.matchAll(/(?:\bt\(|\bk=|["'`])["'`]?([a-z][A-Za-z]*)\.[A-Za-z0-9_.]+["'`]/g)].map((match) => match[1]),
    );
    const known = new Set(readdirSync(join(src, "messages/en")).map((name) => name.replace(/\.ts$/, "")));
    const wanted = [...used].filter(
      (feature) => feature !== "common" && !FOREIGN_ONLY.includes(feature ?? "") && known.has(feature ?? ""),
    );
    if (wanted.length === 0) continue;
    it(`${path.slice(src.length + 1)} loads the words it uses`, () => {
      for (const feature of wanted) {
        // a message file is loaded by this file or by a layout around every page
        const around = feature === "shell" && /app\/(?:layouts|guard)/.test(path);
        expect(around || code.includes(`@/messages/en/${feature}"`), `${path} uses ${feature}.…`).toBe(true);
      }
    });
  }
});
