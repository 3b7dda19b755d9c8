// `just bench overload`: REST, auth and storage at ten times what they can do. Admitted requests are to keep their times, the rest to be
// refused at once with `Retry-After`, and when the load goes everything is to be as before.
//
//   node tools/bench/overload.mjs [--seconds 60] [--times 10] [--only rest,auth,storage] [--work page] [--shared] [--apart] [--write docs/reports/bench-overload.md]
//
// --work: only those with this in their name. --apart: the generator has a core of its own, as if it were another machine. --shared: do not wait for a quiet machine, and say in
// the report that it was none. Environment: as rest.mjs. Each API runs in a process of its own (`--api`), with a PostgreSQL of its own.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { apis } from "./apis.mjs";
import * as bench from "./cluster.mjs";
import { poolSize } from "./rest-ground.mjs";

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "60" }, times: { type: "string", default: "10" },
  only: { type: "string", default: "rest,auth,storage" }, api: { type: "string" }, work: { type: "string", default: "" },
  shared: { type: "boolean", default: false }, apart: { type: "boolean", default: false }, write: { type: "string" },
} });
const seconds = Number(values.seconds);
const times = Number(values.times);
// So many keep the server busy; the flood has ten times as many, or as many as its rate needs if each waits 40 ms for its answer.
const connections = 50;
const floodOf = (rate) => Math.min(2000, Math.max(connections * 10, Math.ceil(rate * 0.04)));
const share = 0.5;
// A log line for each answer from 500 on is PostgREST's; the whole server writes none.
const refuses = { FERROBASE_REFUSE_OVERLOAD: "true", PGRST_LOG_LEVEL: "crit" };
const bare = process.env.BARE_BIN ?? new URL("../../target/release/examples/bare", import.meta.url).pathname;

/** Starts a server that only asks PostgreSQL for what is requested, or stores it in a folder, for so many requests at once, and refuses the others. */
async function startBare(atOnce, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const words = [`127.0.0.1:${bench.serverPort}`, bench.uri("twin"), String(atOnce), folder];
  const child = bench.spawnApart(bare, words, { stdio: ["ignore", "ignore", "inherit"] });
  await bench.untilAnswered(child, "/", "/dev/null");
  return { child };
}

/** Measures a work before, during and after the load; its rows of the table, and what is to be said of it. */
async function measure({ name, serve, requests, hasBare, busy = connections }, folder) {
  const server = await serve();
  await bench.load("http", { connections: busy, seconds: 3, requests });
  const most = await bench.load("http", { connections: busy, seconds: Math.min(10, seconds), requests });
  if (most.wrong > 0) throw new Error(`${name}: ${most.first_wrong}`);
  const capacity = most.per_second;
  const calm = { connections, rate: capacity * share, requests };
  const quiet = await bench.load("open", { ...calm, seconds: Math.min(20, seconds) });
  if (quiet.wrong + quiet.refused.requests > 0) throw new Error(`${name}: a request failed at half the load: ${quiet.first_wrong}`);
  const flood = floodOf(capacity * times);
  const over = await bench.load("open", { connections: flood, rate: capacity * times, seconds, requests });
  if (over.wrong > 0) throw new Error(`${name}: ${over.wrong} were neither served nor refused, the first: ${over.first_wrong}`);
  const after = await bench.load("open", { ...calm, seconds: 5 });
  if (after.wrong > 0) throw new Error(`${name}: after the load: ${after.first_wrong}`);
  await bench.stopServer(server);
  const limits = hasBare ? await measureBare(capacity, quiet.admitted.p99_ms, requests, folder) : [];
  // The first second is when overload is found out.
  const begun = over.seconds[0];
  const worst = Math.max(...over.seconds.slice(1).map(([admitted]) => admitted.p99_ms));
  const late = Math.max(...over.seconds.slice(1).map(([, refused]) => refused.p99_ms));
  const rows = [row(name, { over, quiet: quiet.admitted.p99_ms, capacity, most: most.p99_ms, seconds }), ...limits];
  const told = `- ${name}: with ${flood} connections, in the first second of the load ${bench.whole(begun[0].requests)} were served (p99 ${bench.one(begun[0].p99_ms)} ms) and `
    + `${bench.whole(begun[1].requests)} refused (the slowest after ${bench.one(begun[1].max_ms)} ms); in no later one was the p99 of those served above `
    + `${bench.one(worst)} ms, or that of those refused above ${bench.one(late)} ms. ${bench.percent(over.late)} of the requests left later than drawn, because `
    + `their connection still waited. In the first second after the load ${after.seconds[0][1].requests} were refused and the p99 was `
    + `${bench.one(after.seconds[0][0].p99_ms)} ms; in the five seconds after it ${after.refused.requests} and ${bench.one(after.admitted.p99_ms)} ms.`;
  console.error(rows.join("\n"));
  return { rows, told };
}

/** A row of the table. `ours`, of a limit: the quiet p99 of the server that is measured. */
function row(name, { over, quiet, ours, capacity, most, seconds, hasAims = most !== undefined }) {
  const aim = (text) => (hasAims ? ` (≤ ${text})` : "");
  const [served, refused] = over.later;
  return `| ${[name, hasAims ? bench.whole(capacity) : "", `${bench.one(quiet)} ms`, hasAims ? `${bench.one(most)} ms` : "",
    `${bench.whole(over.per_second)} (${bench.one(over.per_second / capacity)} ×)`, bench.whole(over.admitted.requests / seconds),
    `${bench.one(served.p50_ms)} ms`, `${bench.one(served.p99_ms)} ms: ${bench.two(served.p99_ms / quiet)} ×${hasAims ? aim("2") : `, ${bench.two(served.p99_ms / ours)} × ours`}`,
    bench.whole(over.refused.requests), `${bench.one(refused.p50_ms)} ms`, `${bench.one(refused.p99_ms)} ms${aim("50")}`,
    `${bench.one(over.admitted.p99_ms)} and ${bench.one(over.refused.p99_ms)} ms`, over.without_retry_after].join(" | ")} |`;
}

/** The rows of the bare server at the same rates, for each number of requests at once. */
async function measureBare(capacity, ours, requests, folder) {
  const under = async (atOnce, load) => {
    const server = await startBare(atOnce, folder);
    const found = await bench.load("open", { seconds: Math.min(20, seconds), requests, ...load });
    await bench.stopServer(server);
    if (found.wrong > 0) throw new Error(`the bare server: ${found.first_wrong}`);
    return found;
  };
  const quiet = await under(connections, { connections, rate: capacity * share });
  if (quiet.refused.requests > 0) throw new Error("the bare server refused at half the load");
  const rows = [];
  for (const atOnce of [2, 4, poolSize]) {
    const over = await under(atOnce, { connections: floodOf(capacity * times), rate: capacity * times });
    rows.push(row(`limit: the same from a bare server, ${atOnce} at once`, { over, quiet: quiet.admitted.p99_ms, ours, capacity, seconds: Math.min(20, seconds) }));
  }
  return rows;
}

bench.requirePrograms();
if (values.api) {
  if (values.apart) bench.keepCoresApart();
  const cluster = bench.startCluster();
  const head = bench.circumstances({ isShared: values.shared });
  chmodSync(cluster.folder, 0o755);
  const measured = [];
  const works = await apis[values.api](cluster.folder, connections, refuses);
  for (const work of works.filter(({ name }) => name.includes(values.work))) measured.push(await measure(work, join(cluster.folder, "bare")));
  console.log(JSON.stringify({ head, measured }));
  process.exit(0);
}

const asked = values.only.split(",");
const unknown = asked.filter((api) => !(api in apis));
if (unknown.length > 0) {
  console.error(`bench: there is no API ${unknown.join(", ")}; there are ${Object.keys(apis).join(", ")}`);
  process.exit(1);
}
if (values.write && !values.shared) await bench.waitForQuiet();
const found = asked.map((api) => {
  const words = [process.argv[1], "--api", api, "--seconds", values.seconds, "--times", values.times, "--work", values.work, ...(values.shared ? ["--shared"] : []), ...(values.apart ? ["--apart"] : [])];
  const child = spawnSync(process.execPath, words, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (child.status !== 0) process.exit(1);
  return JSON.parse(child.stdout.trim().split("\n").at(-1));
});
// Those after the first API find the machine as the one before has left it.
const head = found[0].head;
const measured = found.flatMap((api) => api.measured);
bench.publish(`# ${times} times the load

\`just bench overload\`: ${head.text}

What the server can do is measured with ${connections} connections that ask without a pause, with 8 for passwords. Quiet is ${bench.percent(share)} of that, at times drawn by
chance. The load is ${times} times as much for ${seconds} s over 500 to 2,000 connections, each of which waits for its answer; where the generator, which ${values.apart ? "has a core of its own while server and PostgreSQL have the others," : "shares the cores,"}
cannot send as much, the table says how much it sent. ${poolSize} database connections. Aims in brackets. Times are of requests that were sent after
the first second, in which a flood is told from a burst; p99 of all requests, served and refused, at the end. The limit is a server that checks
nothing, asks PostgreSQL for the same rows, or writes the same file and row, and refuses all that come while 2, 4 or ${poolSize} are being asked for; its p99 is compared with its own
quiet one, for which it asks for up to ${connections} at once, and with that of the server that is measured ('ours').

| work | can do/s | quiet p99 | p99 at its most | asked/s | served/s | served p50 | served p99, to quiet | refused | refused p50 | refused p99 | with the first second | without \`Retry-After\` |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
${measured.flatMap(({ rows }) => rows).join("\n")}

${measured.map(({ told }) => told).join("\n")}
`, values.write, head);
process.exit(0);
