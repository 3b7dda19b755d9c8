// `just bench realtime`: idle sockets, broadcasts and changes beside a twin of the same library.
//
//   node tools/bench/realtime.mjs [--rounds 3] [--small] [--shared] [--write docs/reports/bench-realtime.md]
//
// --small: a hundredth of the sockets, for trying the tool. --shared: do not wait for a quiet machine, and say in the
// report that it was none. Environment: FERROBASE_BIN, SOCKETS_BIN, LOAD_BIN, PG_BIN_DIR, BENCH_DB_PORT, BENCH_PORT.
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";

const { values } = parseArgs({ options: {
  rounds: { type: "string", default: "3" }, small: { type: "boolean", default: false },
  shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const rounds = Number(values.rounds);
const size = values.small ? 0.01 : 1;
const idle = 10_000 * size;
const listeners = 1_000 * size;
const messages = 200;
const changes = 20;
const secret = "bench-secret-of-forty-characters-0123456";
const generator = process.env.SOCKETS_BIN ?? new URL("../../target/release/examples/sockets", import.meta.url).pathname;
const adminPort = bench.serverPort + 1;
const twinPort = bench.serverPort + 2;

bench.requirePrograms();
if (values.write && !values.shared) await bench.waitForQuiet();
const cluster = bench.startCluster(["-c wal_level=logical"]);
const head = bench.circumstances({ isShared: values.shared });
// The platform and two tables: one readable by everybody, one with a policy on the reader's claims.
const migrations = join(cluster.folder, "migrations");
mkdirSync(migrations);
writeFileSync(join(migrations, "1_bench.sql"), `
  create table public.open_rows (number int primary key, written bigint not null);
  create table public.guarded_rows (number int primary key, written bigint not null);
  alter table public.guarded_rows enable row level security;
  create policy readers on public.guarded_rows for select to authenticated using (length(auth.jwt() ->> 'sub') > 0);
  grant select on public.open_rows, public.guarded_rows to authenticated;
  alter publication supabase_realtime add table public.open_rows, public.guarded_rows;`);
execFileSync(bench.binary, ["migrate", "--dir", migrations], {
  cwd: cluster.folder, env: { PATH: process.env.PATH, DATABASE_URL: bench.uri("postgres"), JWT_SECRET: secret, RUST_LOG: "error" },
});

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
function token(claims) {
  const content = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded({ exp: Math.floor(Date.now() / 1000) + 7200, ...claims })}`;
  return `${content}.${createHmac("sha256", secret).update(content).digest("base64url")}`;
}
const key = token({ role: "anon" });
const socketUrl = `ws://127.0.0.1:${bench.serverPort}/socket/websocket?apikey=${key}&vsn=2.0.0`;
const twinUrl = `ws://127.0.0.1:${twinPort}/`;

const startServer = () => bench.startServer("realtime", {
  DATABASE_URL: bench.uri("postgres"), API_JWT_SECRET: secret, FERROBASE_LISTEN: `127.0.0.1:${bench.serverPort}`,
  FERROBASE_ADMIN_LISTEN: `127.0.0.1:${adminPort}`, TENANT_MAX_CONCURRENT_USERS: "0", TENANT_MAX_EVENTS_PER_SECOND: "0",
  TENANT_MAX_JOINS_PER_SECOND: "0", FERROBASE_REALTIME_MAX_SOCKETS: "0", FERROBASE_REALTIME_IDLE_TIMEOUT: "3600",
}, "/api/ping");

async function startTwin() {
  const child = bench.spawnApart(generator, ["twin", String(twinPort)], { stdio: ["ignore", "ignore", "inherit"] });
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${twinPort}/`);
      return { child, pid: child.pid };
    } catch {
      if (child.exitCode !== null) throw new Error("the twin did not start");
      await bench.sleep(20);
    }
  }
}

/** Starts the generator; `line()` awaits its next line, `end()` closes its input. */
function generate(mode, job) {
  const file = join(cluster.folder, `job-${Math.random().toString(36).slice(2)}.json`);
  writeFileSync(file, JSON.stringify(job));
  const child = bench.spawnApart(generator, [mode, file], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((done, fail) => {
    child.once("exit", (code) => (code === 0 ? done() : fail(new Error(`sockets ${mode} ended with ${code}`))));
  });
  ended.catch(() => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done) await ended.then(() => Promise.reject(new Error(`sockets ${mode} said nothing`)));
    return JSON.parse(value);
  };
  return { line, end: () => (child.stdin.end(), ended) };
}

/** Memory in kB per idle socket, on a server that has already had some. */
async function idleSockets(pid, job) {
  const warm = generate("hold", { ...job, count: Math.min(200, idle) });
  await warm.line();
  await warm.end();
  await bench.sleep(1000);
  const before = bench.memory(pid);
  const holding = generate("hold", { ...job, count: idle });
  await holding.line();
  await bench.sleep(1000);
  const after = bench.memory(pid);
  await holding.end();
  await bench.sleep(1000);
  return ((after - before) * 1024) / idle;
}

async function once(pid, mode, job) {
  const before = bench.cpuOf(pid);
  const running = generate(mode, job);
  const figure = await running.line();
  await running.end();
  return { ...figure, cpu: bench.cpuOf(pid) - before };
}

async function trips() {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  return Number(text.match(/^ferrobase_realtime_visibility_round_trips_total (\d+)$/m)[1]);
}

/** Inserts rows one by one while everybody listens; also counts the round trips of each. */
async function changed(table, tokens) {
  bench.sql(`truncate public.${table}`);
  const write = (number) => bench.sql(`insert into public.${table} values (${number}, (extract(epoch from clock_timestamp()) * 1e6)::bigint)`);
  const listening = generate("changes", { url: socketUrl, count: listeners, tokens, messages: changes, table });
  await listening.line();
  const counts = [];
  for (let number = 0; number < changes; number++) {
    const before = await trips();
    write(number);
    await bench.sleep(250);
    counts.push((await trips()) - before);
  }
  const figure = await listening.line();
  await listening.end();
  // The first change of a table also loads its definition.
  return { ...figure, first: counts[0], trips: Math.max(...counts.slice(1)) };
}

const cores = availableParallelism();
const seen = { joined: [], bare: [], echo: [], broadcast: [], twin: [], different: [], same: [] };
let server = await startServer();
await bench.sleep(500);
const still = await bench.load("pauses", cores, 5);
const alone = bench.memory(server.pid);
seen.joined.push(await idleSockets(server.pid, { url: socketUrl }));
await bench.stopServer(server);
server = await startServer();
seen.bare.push(await idleSockets(server.pid, { url: socketUrl, plain: true }));
const twin = await startTwin();
seen.echo.push(await idleSockets(twin.pid, { url: twinUrl, plain: true }));
const work = { count: listeners + 1, messages, pause_ms: 50, bytes: 200 };
for (let round = 0; round < rounds; round++) {
  seen.broadcast.push(await once(server.pid, "broadcast", { url: socketUrl, ...work }));
  seen.twin.push(await once(twin.pid, "broadcast", { url: twinUrl, plain: true, ...work }));
}
const person = (number) => token({ role: "authenticated", sub: `00000000-0000-4000-8000-${String(number).padStart(12, "0")}` });
const people = Array.from({ length: listeners }, (_, number) => person(number));
const alike = Array.from({ length: listeners }, () => people[0]);
for (let round = 0; round < rounds; round++) {
  seen.different.push(await changed("guarded_rows", people));
  seen.same.push(await changed("guarded_rows", alike));
}
await bench.stopServer(server);
twin.child.kill();

const of = (name, field) => bench.median(seen[name].map((figure) => figure[field]));
const most = (name, field) => Math.max(...seen[name].map((figure) => figure[field]));
const copies = listeners * messages;
const broadcastRow = (title, name) => `| ${[title, bench.one(of(name, "p50_ms")), bench.one(of(name, "p99_ms")), bench.one(most(name, "max_ms")),
  `${bench.whole(of(name, "received"))} of ${bench.whole(copies)}`, most(name, "disorder"), bench.one(of(name, "cpu") / copies)].join(" | ")} |`;
const changeRow = (title, name, aim) => `| ${[title, most(name, "trips"), aim, bench.one(of(name, "p50_ms")), bench.one(of(name, "p99_ms")),
  `${bench.whole(of(name, "received"))} of ${bench.whole(listeners * changes)}`, most(name, "disorder")].join(" | ")} |`;
bench.publish(`# Realtime under load

\`just bench realtime\`: ${head.text}

Medians of ${rounds} rounds. The twin is a server of the same library (actix-web, its WebSocket codec) that passes a text from one
socket to all others and does nothing else: what it takes belongs to the loopback, the kernel and the library.
With an idle server: ${bench.stillness(still)}.

## ${bench.whole(idle)} idle sockets

| | kB each | aim |
|---|---|---|
| joined one channel | ${bench.one(seen.joined[0])} | ≤ 12 |
| no channel | ${bench.one(seen.bare[0])} | |
| the twin's | ${bench.one(seen.echo[0])} | |

The server alone takes ${bench.one(alone)} MB. Resident memory, after a first couple of sockets; the kernel's buffers are not in it.

## A broadcast to ${bench.whole(listeners)} subscribers

${messages} messages of about 300 bytes, one every 50 ms: ${bench.whole(listeners * 20)} copies a second. Latency from the sender's clock to each reader's,
in one process; aim: p99 ≤ 50 ms and every message there.

| | p50 ms | p99 ms | longest ms | came | out of order | CPU of the server, µs per copy |
|---|---|---|---|---|---|---|
${broadcastRow("Ferrobase", "broadcast")}
${broadcastRow("the twin", "twin")}

## A change to ${bench.whole(listeners)} subscribers

Rows of a table with row level security, inserted one by one; the policy reads each subscriber's claims. Latency from the clock of
the statement, before its commit, to each reader's. Round trips to find out who may see the row, the most of any change but the first.

| | round trips | aim | p50 ms | p99 ms | came | out of order |
|---|---|---|---|---|---|---|
${changeRow(`${bench.whole(listeners)} different claims`, "different", "≤ 5")}
${changeRow("the same claims", "same", "1")}
`, values.write, head);
process.exit(0);
