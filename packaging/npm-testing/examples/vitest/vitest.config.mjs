import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "./vitest/global-setup.mjs",
    include: ["vitest/*.test.mjs"],
    testTimeout: Number(process.env.VITEST_TIMEOUT ?? 5000),
    hookTimeout: Number(process.env.VITEST_TIMEOUT ?? 60_000),
    // All files share one copy, which each test takes back to its seed.
    fileParallelism: false,
  },
});
