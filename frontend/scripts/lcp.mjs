/**
 * Largest Contentful Paint of the landing page and a few others a person may arrive at, on a slow phone: `just lcp`, against a
 * server with the demo data (BASE_URL). Chrome's 'Slow 4G' (562.5 ms per request, 1.47 Mbit/s down, 0.675 up) and a CPU
 * slowed four times; a cold cache each time. Prints milliseconds per run; `--write FILE` keeps them as a report.
 * The figures depend on the machine: read them on a quiet one.
 */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { chromium } from "@playwright/test";

const RUNS = 5;
const LIMIT_MS = 2500;
const ADDRESSES = ["/", "/request-submission", "/login", "/request-status"];
const base = process.env.BASE_URL ?? "http://127.0.0.1:54321";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH,
  args: ["--disable-gpu", "--disable-background-networking", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
});

async function measure(address) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, locale: "en-US" });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 562.5,
    downloadThroughput: (1.6 * 1000 * 1000 * 0.9) / 8,
    uploadThroughput: (750 * 1000 * 0.9) / 8,
  });
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await page.addInitScript(() => {
    window.paints = [];
    new PerformanceObserver((list) => {
      for (const { startTime, element } of list.getEntries()) {
        window.paints.push({ at: startTime, what: element?.tagName.toLowerCase() ?? "?" });
      }
    }).observe({ type: "largest-contentful-paint", buffered: true });
  });
  await page.goto(base + address, { waitUntil: "load" });
  await page.waitForLoadState("networkidle");
  const paints = await page.evaluate(() => window.paints);
  const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  await context.close();
  return { ...paints.at(-1), first };
}

const rows = [];
for (const address of ADDRESSES) {
  const runs = [];
  for (let run = 0; run < RUNS; run += 1) runs.push(await measure(address));
  const ordered = (values) => values.map((value) => Math.round(value)).toSorted((a, b) => a - b);
  const middle = (values) => values[Math.floor(RUNS / 2)];
  const sorted = ordered(runs.map(({ at }) => at));
  const first = middle(ordered(runs.map((run) => run.first)));
  const row = { address, element: runs[0].what, median: middle(sorted), first, sorted };
  rows.push(row);
  console.log(
    `${address.padEnd(22)} ${String(row.median).padStart(5)} ms  (${sorted.join(", ")})  <${row.element}>  first paint ${first} ms`,
  );
}
await browser.close();

const target = process.argv.indexOf("--write");
if (target > 0) {
  const lines = rows.map(
    ({ address, element, median, first, sorted }) =>
      `| \`${address}\` | ${median} | ${sorted.join(", ")} | \`${element}\` | ${first} |`,
  );
  writeFileSync(
    process.argv[target + 1],
    `# Largest Contentful Paint on a slow phone

\`just lcp --write docs/reports/lcp.md\`, ${new Date().toISOString().slice(0, 10)}, on ${cpus().length} cores (${cpus()[0]?.model.trim() || "unknown"}).

Chromium ${browser.version()}, 390 × 844, cold cache, Chrome's 'Slow 4G' (562.5 ms per request, 1.44 Mbit/s down, 0.675 Mbit/s up),
CPU slowed 4 times, ${RUNS} runs each against a debug build with the demo data; load average meanwhile ${loadavg()[0].toFixed(1)}
(under load the figures are higher, because the page shares the slowed CPU). Aim: at most ${LIMIT_MS} ms on the landing page.

| Address | LCP, median, ms | Runs, ms | Element | First paint, median, ms |
|---|---|---|---|---|
${lines.join("\n")}
`,
  );
}
