/**
 * Browser journeys, each worker against a Ferrobase of its own with the demo data; `BASE_URL` (with `INBOX_URL`) names a
 * running one instead, for one worker. `E2E_WORKERS` says how many work at once, `FERROBASE_BIN` which server.
 * Chromium: `CHROMIUM_PATH` (tools/chromium.sh prints one), else Debian's, else Playwright's own. A failure leaves a picture; with `E2E_TRACE`
 * set a trace too, which makes every test a third slower.
 */
import { defineConfig, devices } from "@playwright/test";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";

const executablePath =
  process.env.CHROMIUM_PATH ?? ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find(existsSync);
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
    // code for hot loops, which a journey has none of: compiling it costs more than it saves
    "--js-flags=--no-opt",
    ...(isRoot ? ["--no-sandbox"] : []),
  ],
};

/** Journeys with a bar at the bottom, a dock, a menu or cards in place of rows; see docs/reports/loop.md. */
const PHONE = [
  "routes",
  "content",
  "first-paint",
  "request-form",
  "requester",
  "nonprofit-decisions",
  "nonprofit-requests",
  "working-pages",
  "staff",
  "toasts",
];

export default defineConfig({
  testDir: "./e2e",
  globalSetup: "./e2e/fixtures/prepare.ts",
  fullyParallel: false,
  // Half of a journey is waiting.
  workers: process.env.BASE_URL
    ? 1
    : Number(process.env.E2E_WORKERS ?? Math.max(2, Math.ceil(availableParallelism() * 1.5))),
  retries: 0,
  // No test asserts how fast something is: these are for machines several times slower than the one at hand.
  timeout: 600_000,
  expect: { timeout: 60_000 },
  reporter: [["list"]],
  use: {
    locale: "en-US",
    // what it keeps would hide what a journey asks the server for; e2e/without-a-line.spec.ts is about it
    serviceWorkers: "block",
    timezoneId: "UTC",
    trace: process.env.E2E_TRACE ? "retain-on-failure" : "off",
    screenshot: "only-on-failure",
    launchOptions,
  },
  projects: [
    { name: "desk", use: { viewport: { width: 1280, height: 900 } } },
    {
      name: "phone",
      // That each page opens, fits, can be touched and passes axe on a phone is routes.spec.ts; the rest are the journeys
      // that go other ways there. What a size of screen does not change is looked at on the desk.
      testMatch: PHONE.map((name) => `${name}.spec.ts`),
      // What is the same on every screen, or stands on desks only.
      grepInvert: /@desk/,
      // one device pixel for each of CSS: painting seven times as many in software shows nothing more
      use: { ...devices["Pixel 7"], launchOptions, viewport: { width: 390, height: 844 }, deviceScaleFactor: 1 },
    },
  ],
});
