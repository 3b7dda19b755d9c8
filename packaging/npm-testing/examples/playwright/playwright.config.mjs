import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  testMatch: "*.spec.mjs",
  globalSetup: "./global-setup.mjs",
  // All files share one copy, which each test takes back to its seed.
  workers: 1,
  expect: { timeout: 30_000 },
  use: { launchOptions: { executablePath: process.env.CHROMIUM_PATH } },
});
