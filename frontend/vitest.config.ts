/** Unit tests of the web app, built as the app is. */
import { readdirSync, readFileSync } from "node:fs";
import { defineConfig, mergeConfig } from "vitest/config";
import app from "./vite.config.ts";

/** What a file has that puts something in place of a module or a global, or changes the words that modules keep. */
const CHANGES_WHAT_IS_SHARED =
  /vi\.(?:mock|doMock|resetModules|stubGlobal|stubEnv|useFakeTimers|setSystemTime)\b|speakLocale|translate\b/;
const alone = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => /\.test\.tsx?$/.test(file))
  .map((file) => `src/${file.replaceAll("\\", "/")}`)
  .filter((file) => CHANGES_WHAT_IS_SHARED.test(readFileSync(file, "utf8")));
const of = (ending: string) => alone.filter((file) => file.endsWith(ending));

// What needs no document runs without one: a fraction of the time.
const plain = { environment: "node" } as const;
const screens = { environment: "jsdom" as const, setupFiles: ["./src/testing/setup.ts"] };
// Files share modules and the document where they can: to load both for each anew takes most of the time.
const shared = { pool: "threads", isolate: false } as const;

export default mergeConfig(
  app,
  defineConfig({
    test: {
      restoreMocks: true,
      // For machines several times slower than the one at hand
      testTimeout: 120_000,
      projects: [
        {
          extends: true,
          test: { name: "plain", ...plain, ...shared, include: ["src/**/*.test.ts"], exclude: of(".ts") },
        },
        { extends: true, test: { name: "plain alone", ...plain, include: of(".ts") } },
        {
          extends: true,
          test: {
            name: "screens",
            ...screens,
            ...shared,
            include: ["src/**/*.test.tsx"],
            exclude: of(".tsx"),
          },
        },
        {
          extends: true,
          test: { name: "screens alone", ...screens, include: of(".tsx") },
        },
      ],
    },
  }),
);
