// Public apps' own test suites, each on a copy of the app's project that `ferrobase test` serves.
//   apps.mjs FERROBASE CHROMIUM FOLDER [NAME…]     our program, a Chromium, where the apps are checked out; without a name all
// Nothing of the apps is in this repository: each is fetched at one commit. SAKIYOMI_REPOSITORY and MAKERKIT_REPOSITORY name other
// places to fetch them from, such as a mirror. Their code names ports of `supabase start`; while a suite runs, these lead to the copy.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const EARLY = "on a busy machine it changes the row before the page's channel is joined, and nothing tells of earlier changes, as at Supabase; four seconds later all pass";

const APPS = {
  // Planning poker: Astro, @supabase/ssr, channels, mail by nodemailer.
  sakiyomi: {
    repository: process.env.SAKIYOMI_REPOSITORY ?? "https://github.com/ThatCatDev/sakiyomi.git",
    commit: "3410083ee5b781b4c80198ff835d94b8983a1aa0",
    project: ".",
    ports: { 54325: (env) => env.MAILPIT_SMTP_PORT },
    install: [["npm", "install", "--ignore-scripts", "--silent", "--no-audit", "--no-fund"]],
    // Its own starts the app with Bun.
    files: { "playwright.here.config.ts": playwrightConfig({ server: "command: 'npx astro dev'" }) },
    suites: {
      unit: { folder: ".", command: ["npx", "vitest", "run", "--reporter=json"], report: vitest, passes: 118 },
      browser: { folder: ".", command: ["npx", "playwright", "test", "--config", "playwright.here.config.ts"], report: playwright, passes: 125 },
    },
    // Title: why it fails here.
    failures: {},
    // Title: why it fails at times.
    races: {
      "Manager Controls › participants can vote when voting is active": EARLY,
      "Manager Controls › manager controls should change during voting": EARLY,
      "Manager Controls › manager can reveal votes": EARLY,
      "Manager Controls › results section shows vote distribution and average": EARLY,
    },
  },
  // A starter kit for products: Next.js, accounts with mailed links.
  makerkit: {
    repository: process.env.MAKERKIT_REPOSITORY ?? "https://github.com/makerkit/nextjs-saas-starter-kit-lite.git",
    commit: "0c35b7ff6a13aa1b9e06795cd99a136e50f83464",
    project: "apps/web",
    // The build contains the API's address.
    ports: { 54321: (env) => new URL(env.SUPABASE_URL).port, 54324: (env) => new URL(env.MAILPIT_URL).port },
    packages: ["pnpm@10.18.2"],
    install: [
      ["pnpm", "install", "--frozen-lockfile", "--ignore-scripts", "--silent"],
      ["pnpm", "--filter", "web", "build:test"],
    ],
    files: {
      // Those that fail here take all their time.
      "apps/e2e/playwright.here.config.ts": playwrightConfig({ further: "retries: 1," }),
      // Its font comes from Google's servers; this is Next's way to build without them.
      "fonts.cjs": "module.exports = new Proxy({}, { get: () => \"@font-face { font-family: 'Inter'; src: url(https://fonts.invalid/inter.woff2) }\" });\n",
    },
    env: (folder) => ({ NEXT_FONT_GOOGLE_MOCKED_RESPONSES: join(folder, "fonts.cjs"), PLAYWRIGHT_SERVER_COMMAND: "pnpm --filter web start:test" }),
    suites: {
      browser: { folder: "apps/e2e", command: ["pnpm", "exec", "playwright", "test", "--config", "playwright.here.config.ts"], report: playwright, passes: 6 },
    },
    failures: {
      "Account Settings › user can update their password":
        "the page offers it to sessions of a password alone, and this one comes from a mailed link (amr 'otp', as Supabase Auth has it)",
    },
    races: {
      "Password Reset Flow › will reset the password and sign in with new one":
        "it may open the newest mail before the second has come: it counts on having removed the first, for which Mailpit has no route either",
    },
  },
};

/** The app's own configuration with our browser, a report that can be read, and time for a busy machine. */
function playwrightConfig({ server = "", further = "" }) {
  return `import theirs from "./playwright.config";
export default {
  ...theirs,
  reporter: [["list"], ["json", { outputFile: process.env.REPORT }]],
  timeout: 3 * (theirs.timeout ?? 30_000),
  expect: { ...theirs.expect, timeout: 30_000 },
  use: { ...theirs.use, launchOptions: { executablePath: process.env.CHROMIUM_PATH } },
  webServer: { ...theirs.webServer, timeout: 300_000, ${server} },
  ${further}
};
`;
}

/** The titles of a report's tests, by outcome. */
function playwright(report) {
  const outcomes = { passed: [], failed: [], skipped: [] };
  const read = (suite, path) => {
    const own = suite.file === suite.title ? path : [...path, suite.title];
    for (const spec of suite.specs ?? []) {
      for (const test of spec.tests) {
        const outcome = { expected: "passed", flaky: "passed", skipped: "skipped", unexpected: "failed" }[test.status];
        outcomes[outcome].push([...own, spec.title].join(" › "));
      }
    }
    for (const inner of suite.suites ?? []) read(inner, own);
  };
  for (const suite of report.suites) read(suite, []);
  return outcomes;
}

function vitest(report) {
  const outcomes = { passed: [], failed: [], skipped: [] };
  for (const test of report.testResults.flatMap((file) => file.assertionResults)) {
    outcomes[{ passed: "passed", failed: "failed" }[test.status] ?? "skipped"].push([...test.ancestorTitles, test.title].join(" › "));
  }
  return outcomes;
}

function run(command, folder, env) {
  const [program, ...args] = command;
  const { status, error } = spawnSync(program, args, { cwd: folder, env, stdio: ["ignore", "inherit", "inherit"] });
  assert.equal(status, 0, `${command.join(" ")} in ${folder}: ${error?.message ?? `exit code ${status}`}`);
}

/** Checks an app out and installs it, unless that was done before. */
function prepare(app, folder, env) {
  const done = join(folder, ".prepared");
  const state = JSON.stringify([app.commit, app.install, app.packages, app.files]);
  if (existsSync(done) && readFileSync(done, "utf8") === state) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run(["git", "init", "--quiet"], folder, env);
  run(["git", "fetch", "--quiet", "--depth", "1", app.repository, app.commit], folder, env);
  run(["git", "checkout", "--quiet", "FETCH_HEAD"], folder, env);
  for (const [path, text] of Object.entries(app.files)) writeFileSync(join(folder, path), text);
  if (app.packages) run(["npm", "install", "--prefix", join(folder, ".tools"), "--silent", "--no-audit", "--no-fund", ...app.packages], folder, env);
  for (const command of app.install) run(command, folder, env);
  writeFileSync(done, state);
}

/** Leads a port of this machine to another one. */
function forward(from, to) {
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1");
    for (const [one, other] of [[client, upstream], [upstream, client]]) one.pipe(other).on("error", () => one.destroy());
    client.on("error", () => upstream.destroy());
  });
  return new Promise((done, failed) => {
    server.once("error", (error) => failed(new Error(`port ${from}, which the app's code names, cannot be had: ${error.message}`)));
    server.listen(from, "127.0.0.1", () => done(server));
  });
}

/** Runs an app's suites; the environment names the copy. */
async function suites(name, folder) {
  const app = APPS[name];
  const forwards = await Promise.all(Object.entries(app.ports).map(([from, to]) => forward(Number(from), Number(to(process.env)))));
  const wrong = [];
  for (const [kind, suite] of Object.entries(app.suites)) {
    const report = join(folder, `report-${kind}.json`);
    rmSync(report, { force: true });
    const command = [...suite.command, ...(suite.report === vitest ? [`--outputFile=${report}`] : [])];
    const child = spawn(command[0], command.slice(1), {
      cwd: join(folder, suite.folder),
      // As in the apps' own workflows: few workers, and another try for what a slow machine is late with.
      env: { ...process.env, CI: "1", REPORT: report },
      stdio: ["ignore", "inherit", "inherit"],
    });
    await new Promise((done) => child.once("close", done).once("error", done));
    assert.ok(existsSync(report), `${name}: the suite ${kind} did not run`);
    const { passed, failed, skipped } = suite.report(JSON.parse(readFileSync(report, "utf8")));
    console.log(`${name} ${kind}: ${passed.length} passed, ${failed.length} failed, ${skipped.length} skipped`);
    const known = { ...app.failures, ...app.races };
    for (const title of failed) console.log(`  ${title}: ${known[title] ?? "not known to fail"}`);
    if (passed.length < suite.passes || failed.some((title) => !known[title])) wrong.push(`${name} ${kind}: ${suite.passes} pass`);
    const mended = passed.filter((title) => app.failures[title]);
    if (mended.length > 0) wrong.push(`${name} ${kind}: these pass by now: ${mended.join(", ")}`);
  }
  for (const server of forwards) server.close();
  assert.deepEqual(wrong, []);
}

const script = fileURLToPath(import.meta.url);
const [first, ...rest] = process.argv.slice(2);
if (first === "--suites") {
  await suites(...rest);
  process.exit(0);
}
const [ferrobase, chromium, place] = [first, ...rest].map((path) => resolve(path));
const names = rest.slice(2);
for (const name of names.length > 0 ? names : Object.keys(APPS)) {
  const app = APPS[name];
  assert.ok(app, `there is no app ${name}: ${Object.keys(APPS).join(", ")}`);
  const folder = join(place, name);
  const path = [join(folder, ".tools/node_modules/.bin"), dirname(process.execPath), process.env.PATH].join(delimiter);
  const env = {
    ...process.env,
    ...app.env?.(folder),
    PATH: path,
    CHROMIUM_PATH: chromium,
    ASTRO_TELEMETRY_DISABLED: "1",
    NEXT_TELEMETRY_DISABLED: "1",
  };
  prepare(app, folder, env);
  run([ferrobase, "test", "--", process.execPath, script, "--suites", name, folder], join(folder, app.project), env);
}
