/**
 * Walks many journeys of e2e/chaos.spec.ts and reports what broke: `just chaos 200 --write docs/reports/chaos.md`. With
 * `--log FILE` it reads what an earlier run wrote there (CHAOS_LOG) and walks none. Fails if a journey lost something.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const after = (flag) => (process.argv.includes(flag) ? process.argv[process.argv.indexOf(flag) + 1] : undefined);
const journeys = Number(process.argv[2]);
if (!Number.isInteger(journeys) || journeys < 1) throw new Error("chaos.mjs JOURNEYS [--write FILE] [--log FILE]");
const folder = mkdtempSync(join(tmpdir(), "chaos-"));
const log = after("--log") ?? join(folder, "log");

if (!after("--log")) {
  spawnSync("npx", ["playwright", "test", "chaos.spec.ts", "--project=desk", "--reporter=list"], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: "inherit",
    env: { ...process.env, CHAOS_JOURNEYS: String(journeys), CHAOS_LOG: log },
  });
}
const walked = readFileSync(log, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
rmSync(folder, { recursive: true });

const words = {
  reload: "the page was reloaded",
  back: "back and forth",
  offline: "offline, and the page reloaded while offline",
  kill: "server and PostgreSQL killed (SIGKILL), and the page reloaded before they were back",
  sending: "server and PostgreSQL killed just as the request was sent",
  expired: "the session had expired; signed in again",
};
const times = (what) => walked.flatMap(({ broke }) => broke).filter((one) => one === what).length;
const whole = walked.filter(({ whole }) => whole).length;
const accounts = walked.filter(({ withAccount }) => withAccount).length;
const seeds = walked.map(({ seed }) => seed).sort((a, b) => a - b);
const lost = walked.filter(({ whole }) => !whole).map(({ seed }) => seed);
const report = `# The request form under faults

\`just chaos ${journeys}\` (e2e/chaos.spec.ts), ${new Date().toISOString().slice(0, 10)}: ${walked.length} journeys from the first question to the
request's number, seeds ${seeds[0]} to ${seeds.at(-1)}; ${accounts} with an account, ${walked.length - accounts} as a guest. After each fault the page had
to show every answer typed so far; at the end the nonprofit had to have the request exactly once, as it was written.
${lost.length === 0 ? `All ${whole} arrived complete.` : `${whole} arrived complete, all but seeds ${lost.join(", ")}.`}

| fault | times |
|---|---|
${Object.entries(words)
  .map(([what, text]) => `| ${text} | ${times(what)} |`)
  .join("\n")}
| none during the whole journey | ${walked.filter(({ broke }) => broke.length === 0).length} |
`;
const target = after("--write");
if (target) writeFileSync(target, report);
else console.log(report);
if (lost.length > 0 || walked.length < journeys) process.exit(1);
