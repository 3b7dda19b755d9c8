// `just bench overload`: the REST API at ten times what it can do. Admitted requests are to keep their times, the rest to be
// refused at once with `Retry-After`, and when the load goes everything is to be as before.
//
//   node tools/bench/overload.mjs [--seconds 60] [--times 10] [--shared] [--write docs/reports/bench-overload.md]
//
// --shared: do not wait for a quiet machine, and say in the report that it was none. Environment: as rest.mjs.
import { chmodSync } from "node:fs";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";
import { bearer, items, lay, poolSize, start, users, works } from "./rest-ground.mjs";

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "60" }, times: { type: "string", default: "10" },
  shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const seconds = Number(values.seconds);
const times = Number(values.times);
// So many keep the server busy; the flood has ten times as many.
const connections = 50;
const flood = connections * 10;
const share = 0.5;

bench.requirePrograms();
if (values.write && !values.shared) await bench.waitForQuiet();
const cluster = bench.startCluster();
const head = bench.circumstances({ isShared: values.shared });
chmodSync(cluster.folder, 0o755);
lay(1000);

// A page of a list under row level security: 900 rows are looked at, 30 are the user's.
const pages = Array.from({ length: 300 }, (_, turn) => {
  const user = users[turn % users.length];
  const from = (turn * 7 * 30) % (items - 900);
  return { method: "GET", path: `/item?select=id,label&id=gte.${from}&id=lt.${from + 900}`, headers: bearer(user), status: 200, expect: '[{"id":' };
});
const kinds = [
  { name: "a page of 30 of 900 rows, row level security", requests: pages },
  { name: works[0].name, requests: works[0].requests },
];

const rows = [];
const told = [];
for (const { name, requests } of kinds) {
  const server = await start(undefined, { FERROBASE_REFUSE_OVERLOAD: "true" });
  await bench.load("http", { connections, seconds: 3, requests });
  const most = await bench.load("http", { connections, seconds: Math.min(10, seconds), requests });
  if (most.wrong > 0) throw new Error(`${name}: ${most.first_wrong}`);
  const capacity = most.per_second;
  const calm = { connections, rate: capacity * share, requests };
  const quiet = await bench.load("open", { ...calm, seconds: Math.min(20, seconds) });
  if (quiet.wrong + quiet.refused.requests > 0) throw new Error(`${name}: a request failed at half the load: ${quiet.first_wrong}`);
  const over = await bench.load("open", { connections: flood, rate: capacity * times, seconds, requests });
  if (over.wrong > 0) throw new Error(`${name}: ${over.wrong} were neither served nor refused, the first: ${over.first_wrong}`);
  const after = await bench.load("open", { ...calm, seconds: 5 });
  if (after.wrong > 0) throw new Error(`${name}: after the load: ${after.first_wrong}`);
  await bench.stopServer(server);
  // The first second is when overload is found out.
  const begun = over.seconds[0];
  const steady = over.seconds.slice(1).map(([admitted]) => admitted);
  const worst = Math.max(...steady.map((second) => second.p99_ms));
  const served = over.admitted.requests / seconds;
  const ratio = over.admitted.p99_ms / quiet.admitted.p99_ms;
  rows.push(`| ${[name, bench.whole(capacity), `${bench.one(quiet.admitted.p99_ms)} ms`, `${bench.one(most.p99_ms)} ms`,
    `${bench.whole(over.per_second)} (${bench.one(over.per_second / capacity)} ×)`, bench.whole(served),
    `${bench.one(over.admitted.p50_ms)} ms`, `${bench.one(over.admitted.p99_ms)} ms: ${bench.two(ratio)} × (≤ 2)`,
    bench.whole(over.refused.requests), `${bench.one(over.refused.p50_ms)} ms`, `${bench.one(over.refused.p99_ms)} ms (≤ 50)`,
    over.without_retry_after].join(" | ")} |`);
  told.push(`- ${name}: in the first second of the load ${bench.whole(begun[0].requests)} were served (p99 ${bench.one(begun[0].p99_ms)} ms) and `
    + `${bench.whole(begun[1].requests)} refused (the slowest after ${bench.one(begun[1].max_ms)} ms); in no later one was the p99 of those served above `
    + `${bench.one(worst)} ms. ${bench.percent(over.late)} of the requests left later than drawn, because their connection still waited. In the first `
    + `second after the load ${after.seconds[0][1].requests} were refused and the p99 was ${bench.one(after.seconds[0][0].p99_ms)} ms; in the five `
    + `seconds after it ${after.refused.requests} and ${bench.one(after.admitted.p99_ms)} ms.`);
  console.error(rows.at(-1));
}
bench.publish(`# The REST API at ${times} times its load

\`just bench overload\`: ${head.text}

What the server can do is measured with ${connections} connections that ask without a pause. Quiet is ${bench.percent(share)} of that, at times drawn by
chance. The load is ${times} times as much for ${seconds} s over ${flood} connections, each of which waits for its answer; where a generator on the same
cores cannot send as much, the table says how much it sent. ${poolSize} database connections. Aims in brackets.

| work | can do/s | quiet p99 | p99 at its most | asked/s | served/s | served p50 | served p99, to quiet | refused | refused p50 | refused p99 | without \`Retry-After\` |
|---|---|---|---|---|---|---|---|---|---|---|---|
${rows.join("\n")}

${told.join("\n")}
`, values.write, head);
process.exit(0);
