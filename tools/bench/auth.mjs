// `just bench auth`: `GET /user`, refresh and password sign-in, the latter beside bare bcrypt on the same cores.
//
//   node tools/bench/auth.mjs [--seconds 10] [--rounds 3] [--write docs/reports/bench-auth.md]
//
// Environment: FERROBASE_BIN, LOAD_BIN, PG_BIN_DIR, BENCH_DB_PORT, BENCH_PORT.
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { json, password, prepareDatabase, serverSettings, signUp } from "./auth-server.mjs";
import * as bench from "./cluster.mjs";

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "10" }, rounds: { type: "string", default: "3" }, write: { type: "string" },
} });
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const connections = 16;
const cores = availableParallelism();

bench.requirePrograms();
if (values.write) await bench.waitForQuiet();
const cluster = bench.startCluster();
const head = bench.circumstances();
prepareDatabase();

const settings = serverSettings();
// The first start migrates the schema; later ones find it up to date.
const starts = [];
let server = await bench.startServer("auth", settings, "/health");
const firstStart = server.firstMs;
for (let round = 0; round < Math.max(3, rounds); round++) {
  await bench.stopServer(server);
  server = await bench.startServer("auth", settings, "/health");
  starts.push(server.firstMs);
}
await bench.sleep(500);
const still = await bench.load("pauses", cores, Math.min(10, seconds));
const idle = bench.memory(server.pid);

const { people, works, signIn } = await signUp(connections);

async function measure(work, options = {}) {
  const before = [bench.cpuOf(server.pid), bench.cpuOf(cluster.postmaster)];
  const figure = await bench.load("http", { connections, seconds, ...work, ...options });
  if (figure.wrong > 0) throw new Error(`${figure.wrong} wrong responses, the first: ${figure.first_wrong}`);
  return { ...figure, server: (bench.cpuOf(server.pid) - before[0]) / figure.requests,
    postgres: (bench.cpuOf(cluster.postmaster) - before[1]) / figure.requests };
}

await measure(works.user, { seconds: Math.min(2, seconds) });
const seen = { user: [], refresh: [], password: [] };
const bare = [];
for (let round = 0; round < rounds; round++) {
  seen.user.push(await measure(works.user));
  // Every connection refreshes its own token family, from a new sign-in.
  const initial = [];
  for (const { email } of people) {
    const session = await bench.call("/token?grant_type=password", { method: "POST", headers: json, body: JSON.stringify({ email, password }) });
    initial.push(session.refresh_token);
  }
  seen.refresh.push(await measure({ ...works.refresh, initial }));
  seen.password.push(await measure(works.password));
  bare.push((await bench.load("bcrypt", cores, seconds)).per_second);
}

// The same sign-in for a known and for an unknown address, one at a time and in turn: their times must not differ.
const times = { known: [], unknown: [] };
for (let round = 0; round < Math.max(3, rounds); round++) {
  const wrong = { connections: 1, seconds: Math.min(3, seconds) };
  times.known.push((await measure({ requests: [signIn(people[0].email, "a wrong password", 400, "invalid_")] }, wrong)).p50_ms);
  times.unknown.push((await measure({ requests: [signIn("nobody@example.org", "a wrong password", 400, "invalid_")] }, wrong)).p50_ms);
}

// A read beside bcrypt: one sign-in at a time keeps at most one core in bcrypt.
const quiet = [], beside = [];
for (let round = 0; round < rounds; round++) {
  quiet.push((await measure(works.user, { connections: 1 })).p99_ms);
  const [read] = await Promise.all([
    bench.load("http", { connections: 1, seconds, ...works.user }),
    bench.load("http", { connections: 1, seconds, ...works.password }),
  ]);
  if (read.wrong > 0) throw new Error(`a wrong response beside bcrypt: ${read.first_wrong}`);
  beside.push(read.p99_ms);
}
const after = bench.memory(server.pid);
await bench.stopServer(server);

const of = (name, field) => bench.median(seen[name].map((figure) => figure[field]));
const row = (title, name, aim) => `| ${[title, bench.whole(of(name, "per_second")), bench.one(of(name, "p50_ms")), bench.one(of(name, "p99_ms")),
  bench.whole(of(name, "server")), bench.whole(of(name, "postgres")), aim].join(" | ")} |`;
const bareRate = bench.median(bare);
const [known, unknown] = [bench.median(times.known), bench.median(times.unknown)];
bench.publish(`# The auth API under load

\`just bench auth\`: ${head.text}

${connections} connections, a pool of 20; ${rounds} rounds of ${seconds} s, medians; every response is compared. CPU in µs per request.
With an idle server: ${bench.stillness(still)}.

| work | requests/s | p50 ms | p99 ms | CPU server | CPU PostgreSQL | aim, requests/s |
|---|---|---|---|---|---|---|
${row("`GET /user`", "user", "≥ 8,000")}
${row("refresh, a family per connection", "refresh", "≥ 3,000")}
${row("password sign-in", "password", "see below")}

| what | figure | aim |
|---|---|---|
| password sign-in to bare bcrypt (cost 10, ${cores} threads, ${bench.one(bareRate)}/s, no server at work) | ${bench.percent(of("password", "per_second") / bareRate)} | ≥ 90 % |
| p99 of \`GET /user\` on one connection, quiet | ${bench.two(bench.median(quiet))} ms | |
| … while one sign-in at a time runs beside it | ${bench.two(bench.median(beside))} ms: ${bench.two(bench.median(beside) / bench.median(quiet))} × quiet | ≤ 2 × |
| refused sign-in, p50: known address, unknown address | ${bench.two(known)} ms, ${bench.two(unknown)} ms: ${bench.percent((unknown - known) / known)} apart | not told apart |
| resident memory idle | ${bench.one(idle)} MB | ≤ 15 MB |
| … after this load (not an hour) | ${bench.one(after)} MB | ≤ 30 MB after an hour |
| exec to first 200, migrated database | ${bench.one(bench.median(starts))} ms | ≤ 50 ms |
| … with all migrations on an empty schema | ${bench.one(firstStart)} ms | |
`, values.write, head);
process.exit(0);
