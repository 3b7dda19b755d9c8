/**
 * Browser journeys against a running Ferrobase (`BASE_URL`, default the development server's address).
 * Chromium: `CHROMIUM_PATH`, else /usr/bin/chromium, else Playwright's own. A failure leaves a picture; with `E2E_TRACE`
 * set a trace too, which makes every test a third slower.
 */
import { defineConfig, devices } from "@playwright/test";
import { existsSync } from "node:fs";

const executablePath = process.env.CHROMIUM_PATH ?? (existsSync("/usr/bin/chromium") ? "/usr/bin/chromium" : undefined);
const isRoot = process.getuid?.() === 0;
const launchOptions = {
  executablePath,
  args: [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    ...(isRoot ? ["--no-sandbox"] : []),
  ],
};

export default defineConfig({
  testDir: "./e2e",
  fullyParallel: false,
  workers: 1,
  retries: 0,
  // No test asserts how fast something is: these are for machines several times slower than the one at hand.
  timeout: 600_000,
  expect: { timeout: 60_000 },
  reporter: [["list"]],
  use: {
    baseURL: process.env.BASE_URL ?? "http://127.0.0.1:54321",
    locale: "en-US",
    timezoneId: "UTC",
    trace: process.env.E2E_TRACE ? "retain-on-failure" : "off",
    screenshot: "only-on-failure",
    launchOptions,
  },
  projects: [
    { name: "desk", use: { viewport: { width: 1280, height: 900 } } },
    {
      name: "phone",
      // The crash story is about the server alone; every size of screen asks for the same data in the same order, and
      // lets the same people in. That each page opens and fits on a phone is routes.spec.ts.
      testIgnore: ["loop.spec.ts", "waterfalls.spec.ts", "requests-made.spec.ts", "guards.spec.ts"],
      // What stands on desks only; the test's title says what.
      grepInvert: /@desk/,
      use: { ...devices["Pixel 7"], launchOptions, viewport: { width: 390, height: 844 } },
    },
  ],
});
