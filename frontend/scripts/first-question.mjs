/**
 * The cost of the request form's first question on a slow connection: 280 kbit/s, 800 ms round trip, a CPU slowed four
 * times and an empty cache. `just first-question`, against a server (BASE_URL): every byte that comes before the
 * question can be answered, when that is, and when the next step stands after it was answered at once. `--write FILE`
 * keeps it as a report.
 */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { chromium } from "@playwright/test";

const RUNS = 3;
const KBIT_PER_S = 280;
const ROUND_TRIP_MS = 800;
const LIMIT_KB = 150;
const LIMIT_S = 15;
const base = process.env.BASE_URL ?? "http://127.0.0.1:54321";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH,
  args: ["--disable-gpu", "--disable-background-networking", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
});

async function visit() {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, locale: "en-US" });
  const page = await context.newPage();
  page.setDefaultTimeout(180_000);
  const devtools = await context.newCDPSession(page);
  await devtools.send("Network.enable");
  const bytesPerSecond = (KBIT_PER_S * 1000) / 8;
  await devtools.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: ROUND_TRIP_MS,
    downloadThroughput: bytesPerSecond,
    uploadThroughput: bytesPerSecond,
  });
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const paths = new Map();
  const files = [];
  let bytes = 0;
  devtools.on("Network.requestWillBeSent", ({ requestId, request }) => paths.set(requestId, request.url));
  devtools.on("Network.dataReceived", ({ encodedDataLength }) => (bytes += encodedDataLength));
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) =>
    files.push([paths.get(requestId)?.replace(base, ""), encodedDataLength]),
  );
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  await page.goto(`${base}/request-submission`, { waitUntil: "commit" });
  await page.getByRole("heading", { level: 1, name: "Choose type of assistance" }).filter({ visible: true }).waitFor();
  const readable = seconds();
  const card = page.getByRole("button", { name: /^Rent Support/ });
  await card.waitFor();
  const usable = seconds();
  const before = { bytes, files: [...files] };
  await card.click();
  await page.getByRole("checkbox").first().waitFor();
  const next = seconds();
  await context.close();
  return { readable, usable, next, ...before };
}

const runs = [];
for (let run = 0; run < RUNS; run += 1) runs.push(await visit());
const chromiumVersion = browser.version();
await browser.close();
const middle = (name) => runs.map((run) => run[name]).toSorted((a, b) => a - b)[Math.floor(RUNS / 2)];
const kilobytes = Math.max(...runs.map(({ files }) => files.reduce((sum, [, bytes]) => sum + bytes, 0))) / 1000;
const facts = [
  ["bytes until it can be answered, kB", kilobytes.toFixed(1), `≤ ${LIMIT_KB}`],
  ["time until readable, s", middle("readable").toFixed(1), ""],
  ["time until it can be answered, s", middle("usable").toFixed(1), `≤ ${LIMIT_S}`],
  ["time until the next step is shown, if answered at once, s", middle("next").toFixed(1), ""],
];
for (const fact of facts) console.log(fact.join("  "));
for (const [file, bytes] of runs[0].files) console.log(String(bytes).padStart(8), file);

const target = process.argv.indexOf("--write");
if (target > 0) {
  const rows = runs[0].files.map(([file, bytes]) => `| \`${file}\` | ${bytes} |`).join("\n");
  writeFileSync(
    process.argv[target + 1],
    `# The first question of the request form on a slow connection

\`just first-question --write docs/reports/first-question.md\`, ${new Date().toISOString().slice(0, 10)}, on ${cpus().length} cores (${cpus()[0]?.model.trim() || "unknown"}).

Chromium ${chromiumVersion}, 390 × 844, empty cache, ${KBIT_PER_S} kbit/s in both directions, ${ROUND_TRIP_MS} ms for each request, CPU slowed 4 times,
median of ${RUNS} visits against a debug build with the demo data; load average meanwhile ${loadavg()[0].toFixed(1)}. The bytes are those
loaded by the time the question can be answered: page, styles, code, settings, kinds of help. The web font and the rest of the form load later.

| | measured | goal |
|---|---|---|
${facts.map((fact) => `| ${fact.join(" | ")} |`).join("\n")}

| File | Bytes transferred |
|---|---|
${rows}
`,
  );
}
if (kilobytes > LIMIT_KB || middle("usable") > LIMIT_S) process.exitCode = 1;
