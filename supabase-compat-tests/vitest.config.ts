import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: "tests/server.ts",
    setupFiles: "tests/setup.ts",
    reporters: ["default", "./report/reporter.ts"],
    testTimeout: 60_000,
    hookTimeout: 30_000,
    retry: 0,
  },
});
