// `just bench app`: the database time of AidBridge's lists with 1,000,000 requests, 200,000 of them at one organization.
//
//   node tools/bench/app.mjs [--requests 1000000] [--rounds 7] [--write docs/reports/bench-app.md]
//
// Environment: FERROBASE_BIN, PG_BIN_DIR, BENCH_DB_PORT; BENCH_APP_URL names a database that app.sql has filled before.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";

const { values } = parseArgs({ options: {
  requests: { type: "string", default: "1000000" }, rounds: { type: "string", default: "7" }, write: { type: "string" },
} });
const rounds = Number(values.rounds);
const filled = process.env.BENCH_APP_URL;
if (!filled) {
  bench.requirePrograms();
  bench.startCluster();
}
const url = filled ?? bench.uri("postgres");

function run(program, words, input) {
  const result = spawnSync(program, words, { input, encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, DATABASE_URL: url } });
  if (result.status !== 0) throw new Error(`${program}: ${result.stderr}`);
  return result.stdout;
}
const psql = (script, ...words) => run("psql", ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", ...words, url], script);

if (!filled) {
  run(bench.binary, ["migrate"]);
  psql(readFileSync(new URL("app.sql", import.meta.url), "utf8"), "-v", `requests=${values.requests}`);
}
const count = (source) => Number(psql(`select count(*) from ${source}`)).toLocaleString("en");

const page = (more = "") => `select public.incoming_page('big'${more})`;
/** Group, what a person does, statement; a group's aim holds for the sum of its medians, or for each of them. */
const works = [
  ["open", "Incoming Requests, first page with the counts of all tabs", page()],
  ["open", "the badge of the sidebar", "select public.incoming_request_counts('big')"],
  ["list", "tab Pending", page(", status => 'pending'")],
  ["list", "tab Approved, page 50", page(", status => 'approved', page => 50")],
  ["list", "newest first", page(", sort => 'date', descending => true")],
  ["list", "by category", page(", sort => 'category'")],
  ["list", "by amount, the largest first", page(", sort => 'amount', descending => true")],
  ["list", "the dashboard", "select public.nonprofit_dashboard('big')"],
  ["list", "budget figures", "select public.nonprofit_budget('big')"],
  ["list", "grants with what is left to pay", "select public.grants_page('big')"],
  ["list", "unread notifications", "select count(*) from public.notifications where user_id = '7e570000-0000-4000-8000-000000000001' and not read"],
  ["search", "a rare name", page(", search => 'vandersloot'")],
  ["search", "a name in one of twenty", page(", search => 'garcia'")],
  ["search", "two words", page(", search => 'garcia marie'")],
  ["search", "a word in one of five", page(", search => 'food'")],
  ["search", "a number", page(", search => 'REQ-100500'")],
  ["search", "two letters", page(", search => 'va'")],
  ["search", "nothing found", page(", search => 'zzz'")],
];
const aims = { open: 30, list: 30, search: 50 };

// One session, as the pool's are; the first round warms it up and is not counted.
const script = ["select set_config('request.jwt.claims', '{\"role\": \"authenticated\", \"sub\": \"7e570000-0000-4000-8000-000000000001\"}', false);",
  "set role authenticated;", "set jit = off;"];
for (let round = 0; round <= rounds; round++) {
  for (const [, , statement] of works) script.push(`\\echo @@`, `explain (analyze, timing off, format json) ${statement};`);
}
const times = works.map(() => []);
psql(script.join("\n")).split("@@\n").slice(1).forEach((text, index) => {
  if (index >= works.length) times[index % works.length].push(JSON.parse(text)[0]["Execution Time"]);
});
const figures = works.map(([group, what], index) => ({ group, what, median: bench.median(times[index]), worst: Math.max(...times[index]) }));
const opening = figures.filter(({ group }) => group === "open").reduce((sum, { median }) => sum + median, 0);
const version = psql("show server_version").trim();

const text = `# The lists of AidBridge at scale

\`just bench app\`: ${count("public.requests")} requests, ${count("public.request_nonprofits where nonprofit_id = 'big'")} of them at one organization; PostgreSQL ${version}.
Database time of one call in ms, from \`explain analyze\` as a manager of that organization, with row level security; ${rounds} rounds after a warm-up round.

| what | median | worst | aim |
|---|---|---|---|
${figures.map(({ group, what, median, worst }) => `| ${group === "search" ? "search: " : ""}${what} | ${bench.one(median)} | ${bench.one(worst)} | ${group === "open" ? "" : `≤ ${aims[group]}`} |`).join("\n")}
| **opening Incoming Requests: page, counts and badge together** | **${bench.one(opening)}** | | ≤ ${aims.open} |
`;
console.log(text);
if (values.write) writeFileSync(values.write, text);
const missed = figures.filter(({ group, median }) => group !== "open" && median > aims[group]);
if (opening > aims.open || missed.length > 0) console.error(`bench: over the aim: ${missed.map(({ what }) => what).join(", ") || "opening"}`);
process.exit(0);
