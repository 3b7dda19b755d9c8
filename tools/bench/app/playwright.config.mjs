// The app in Chromium. APP_PORT: where Vite serves it.
import { join } from "node:path";
import { defineConfig } from "@playwright/test";

const port = process.env.APP_PORT;
export default defineConfig({
  testDir: "./e2e",
  testMatch: "*.spec.mjs",
  workers: 1,
  reporter: "line",
  timeout: 120_000,
  expect: { timeout: 60_000 },
  outputDir: join(process.env.FERROBASE_TEST_FOLDER, "playwright"),
  use: { baseURL: `http://127.0.0.1:${port}`, launchOptions: { executablePath: process.env.CHROMIUM_PATH } },
  webServer: { command: `vite --host 127.0.0.1 --port ${port} --strictPort`, port: Number(port), timeout: 120_000 },
});
