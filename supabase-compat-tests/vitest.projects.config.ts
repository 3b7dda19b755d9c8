import { defineConfig } from "vitest/config";

/** Projects that the CLI starts; see `projects/started.ts`. */
export default defineConfig({
  test: {
    include: ["projects/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    retry: 0,
  },
});
