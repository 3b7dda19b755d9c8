// `just bench rest`: the REST API beside pgbench, which runs the SQL that the server itself sends.
//
//   node tools/bench/rest.mjs [--seconds 10] [--rounds 3] [--small] [--shared] [--write docs/reports/bench-rest.md]
//
// --small: a hundredth of the large read, insert and schema, for trying the tool. --shared: do not wait for a quiet
// machine, and say in the report that it was none. Environment: FERROBASE_BIN, LOAD_BIN,
// PG_BIN_DIR, BENCH_DB_PORT, BENCH_PORT.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";
import { bearer, items, lay, poolSize, roles, start, users, works } from "./rest-ground.mjs";

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "10" }, rounds: { type: "string", default: "3" },
  small: { type: "boolean", default: false }, shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const size = values.small ? 0.01 : 1;
const connections = 50;
const largeRows = 1_000_000 * size;
const bulkRows = 100_000 * size;

bench.requirePrograms();
if (values.write && !values.shared) await bench.waitForQuiet();
const cluster = bench.startCluster();
const head = bench.circumstances({ isShared: values.shared });
chmodSync(cluster.folder, 0o755);

lay(largeRows);

/** Sends one request while PostgreSQL logs its statements; returns [{text, parameters}] of that transaction. */
async function statementsOf(request) {
  const log = join(cluster.folder, "log");
  const from = statSync(log).size;
  await bench.load("http", { connections: 1, seconds: 0.2, requests: [request] });
  await bench.sleep(200);
  const lines = readFileSync(log, "utf8").slice(from).replaceAll("\n\t", "\n").split(/^(?=[0-9a-f]+\.[0-9a-f]+@@)/m);
  const found = [];
  for (const line of lines) {
    const statement = line.match(/@@LOG: {2}(?:statement|execute [^:]*): ([^]*)$/);
    const detail = line.match(/@@DETAIL: {2}[Pp]arameters: ([^]*)$/);
    if (statement) found.push({ text: statement[1].trim(), parameters: [] });
    if (detail) {
      found.at(-1).parameters = [...detail[1].matchAll(/\$\d+ = (?:'((?:[^']|'')*)'|NULL)/g)].map((m) => m[1]?.replaceAll("''", "'") ?? null);
    }
  }
  const first = found.findIndex(({ text }) => /^begin/i.test(text));
  const last = found.findIndex(({ text }, place) => place > first && /^commit/i.test(text));
  if (first < 0 || last < 0) throw new Error(`no transaction in the log: ${JSON.stringify(found)}`);
  return found.slice(first, last + 1);
}

/** Writes the twin: one pgbench script per role, the transaction pipelined in one round trip. */
async function writeTwin(work, place) {
  bench.sql("alter system set log_statement = 'all'; select pg_reload_conf()");
  await bench.sleep(300);
  const scripts = [];
  for (const number of [0, 1, 2]) {
    const request = work.requests.find(({ headers, expect }) => headers.Authorization === bearer(users[number]).Authorization && expect !== "[]");
    const statements = await statementsOf(request);
    const names = [];
    const lines = work.variable ? [`\\set k random(0, ${items / 30 - 1})`, `\\set id :k * 30 + ${number}`] : [];
    lines.push("\\startpipeline");
    statements.forEach(({ text, parameters }, which) => {
      const isQuery = which === statements.length - 2;
      const sqlText = text.replaceAll(/\$(\d+)/g, (_, digits) => {
        // The first parameter of the query is the row asked for (or rpc's first argument): it varies as the server's does.
        if (isQuery && work.variable && digits === "1") return ":id";
        const name = `p${number}_${which}_${digits}`;
        if (!names.some(([known]) => known === name)) names.push([name, parameters[digits - 1] ?? ""]);
        return `:${name}`;
      });
      lines.push(`${sqlText.replaceAll(/\s*\n\s*/g, " ")};`);
    });
    lines.push("\\endpipeline", "");
    const file = join(cluster.folder, `twin-${place}-${number}.sql`);
    writeFileSync(file, lines.join("\n"));
    scripts.push({ file, names, statements });
  }
  bench.sql("alter system reset log_statement; select pg_reload_conf()");
  await bench.sleep(300);
  return scripts;
}

function pgbench(scripts, clients, time) {
  const log = join(cluster.folder, "latencies");
  const words = ["-n", "-M", "prepared", "-c", clients, "-j", 1, "-T", Math.max(3, Math.round(time)),
    "-l", "--log-prefix", log, "--sampling-rate", 0.2];
  for (const { file, names } of scripts) {
    words.push("-f", file);
    for (const [name, value] of names) words.push("-D", `${name}=${value}`);
  }
  return new Promise((done, fail) => {
    const child = bench.spawnApart("pgbench", [...words.map(String), bench.uri("twin")], { stdio: ["ignore", "pipe", "pipe"] });
    let text = "", errors = "";
    child.stdout.on("data", (piece) => (text += piece));
    child.stderr.on("data", (piece) => (errors += piece));
    child.on("exit", (code) => {
      const number = (pattern) => Number(text.match(pattern)?.[1]);
      const figure = { requests: number(/actually processed: (\d+)/), perSecond: number(/^tps = ([\d.]+)/m) };
      if (code !== 0 || !(figure.perSecond > 0)) return fail(new Error(`pgbench: ${errors}${text}`));
      const logs = readdirSync(cluster.folder).filter((name) => name.startsWith("latencies")).map((name) => join(cluster.folder, name));
      // A line is: client, transaction, microseconds, …
      const times = logs.flatMap((file) => readFileSync(file, "utf8").trim().split("\n").map((line) => Number(line.split(" ")[2])));
      logs.forEach((file) => rmSync(file));
      times.sort((a, b) => a - b);
      done({ ...figure, p99: times[Math.floor(times.length * 0.99)] / 1000 });
    });
  });
}

const still = await bench.load("pauses", availableParallelism(), Math.min(10, seconds));
const server = await start();
await bench.sleep(500);
const idle = bench.memory(server.pid);
let checked = 0;
const lines = [];
const twins = [];
for (const [place, work] of works.entries()) {
  const scripts = await writeTwin(work, place);
  twins.push(scripts[0]);
  await bench.load("http", { connections, seconds: Math.min(2, seconds), requests: work.requests });
  const ours = [], theirs = [];
  for (let round = 0; round < rounds; round++) {
    const before = [bench.cpuOf(server.pid), bench.cpuOf(cluster.postmaster)];
    const figure = await bench.load("http", { connections, seconds, requests: work.requests });
    if (figure.wrong > 0) throw new Error(`${work.name}: ${figure.wrong} wrong responses, the first: ${figure.first_wrong}`);
    checked += figure.requests;
    ours.push({ ...figure, server: (bench.cpuOf(server.pid) - before[0]) / figure.requests, postgres: (bench.cpuOf(cluster.postmaster) - before[1]) / figure.requests });
    const cpu = bench.cpuOf(cluster.postmaster);
    const twin = await pgbench(scripts, connections, seconds);
    theirs.push({ ...twin, postgres: (bench.cpuOf(cluster.postmaster) - cpu) / twin.requests });
  }
  const of = (list, field) => bench.median(list.map((figure) => figure[field]));
  const ratio = of(ours, "per_second") / of(theirs, "perSecond");
  const cpuRatio = (of(ours, "server") + of(ours, "postgres")) / of(theirs, "postgres");
  lines.push(`| ${[work.name, bench.whole(of(ours, "per_second")), bench.one(of(ours, "p50_ms")), `${bench.one(of(ours, "p99_ms"))} (≤ 8)`,
    bench.one(of(theirs, "p99")), bench.one(of(ours, "p99_ms") * of(theirs, "perSecond") / work.aimsTwin), bench.whole(of(theirs, "perSecond")), `${bench.percent(ratio)} (≥ ${bench.percent(work.aim)})`, bench.whole(of(ours, "server")),
    bench.whole(of(ours, "postgres")), bench.whole(of(theirs, "postgres")), `${bench.two(cpuRatio)} (≤ 1.50)`].join(" | ")} |`);
  console.error(lines.at(-1));
}
const afterLoad = bench.memory(server.pid);

// The large read: psql sends the same rows through COPY to nowhere.
const copy = "COPY (SELECT row_to_json(t) FROM (SELECT big.* FROM bench.big) t) TO STDOUT;";
const reads = [], copies = [], growth = [];
for (let round = 0; round < rounds; round++) {
  const before = bench.memory(server.pid);
  bench.resetPeak(server.pid);
  reads.push(await bench.load("once", { requests: [{ method: "GET", path: "/big", headers: bearer(users[0]), status: 200 }] }));
  growth.push(bench.memory(server.pid, "VmHWM") - before);
  const begin = performance.now();
  bench.sql(copy, { output: "ignore" });
  copies.push(performance.now() - begin);
}

// The bulk insert: psql runs the same kind of statement with the same body.
const body = JSON.stringify(Array.from({ length: bulkRows }, (_, id) => ({ id, name: `name of row ${id}`, amount: id % 1000 })));
const bodyFile = join(cluster.folder, "bulk.json");
writeFileSync(bodyFile, body);
const insert = `INSERT INTO bench.bulk (id, name, amount) SELECT id, name, amount FROM json_to_recordset($body$${body}$body$) AS _(id int, name text, amount int);`;
const posts = [], inserts = [];
for (let round = 0; round < rounds; round++) {
  bench.sql("truncate bench.bulk; checkpoint");
  posts.push((await bench.load("once", { requests: [{ method: "POST", path: "/bulk", headers: { ...bearer(users[0]), Prefer: "return=minimal", "Content-Type": "application/json" }, body_file: bodyFile, status: 201 }] })).total_ms);
  if (Number(bench.sql("select count(*) from bench.bulk")) !== bulkRows) throw new Error("the bulk insert lost rows");
  bench.sql("truncate bench.bulk; checkpoint");
  const begin = performance.now();
  bench.sql(insert);
  inserts.push(performance.now() - begin);
}
await bench.stopServer(server);

// Exec to the first 200, on this schema and on one of 10,000 tables.
const starts = { postgres: [], many: [] };
const tables = Math.round(10_000 * size);
bench.sql("create database many");
bench.sql(`create schema bench; grant usage on schema bench to anon; create table bench.big (id int primary key); grant select on bench.big to anon;
-- Each refers to the one before it: a table that all the others referred to would cost PostgreSQL tens of milliseconds in
-- every session whenever one more comes, with no server in between.
${Array.from({ length: 20 }, (_, part) => `create table bench.t_${part}_0 (id int primary key);
do $$ begin for n in 1..${Math.ceil(tables / 20) - 1} loop
  execute format('create table bench.t_${part}_%s (id int primary key, name text not null, other int references bench.t_${part}_%s)', n, n - 1); end loop; end $$;`).join("\n")}
vacuum analyze;`, { database: "many" });
let manyMemory = 0;
// Flush earlier writes, which are not part of a start.
bench.sql("checkpoint");
for (let round = 0; round < Math.max(9, rounds); round++) {
  for (const database of round < 3 ? ["postgres", "many"] : ["postgres"]) {
    const started = await start(database);
    starts[database].push(started.firstMs);
    if (database === "many") manyMemory = bench.memory(started.pid);
    await bench.stopServer(started);
  }
}

// Requests while the schema changes: every quarter of a second a table is created (an event trigger notifies the
// server) or a reload is requested by NOTIFY. For comparison, the same requests without changes.
async function whileSchemaChanges(database) {
  bench.sql(`create or replace function bench.tell() returns event_trigger language plpgsql as $$ begin notify pgrst, 'reload schema'; end $$;
create event trigger tell on ddl_command_end execute function bench.tell();`, { database });
  const started = await start(database);
  const job = { connections: 4, seconds, pause_ms: 1, requests: [{ method: "GET", path: "/big?id=eq.1", headers: { Accept: "application/json" }, status: 200 }] };
  const quiet = await bench.load("http", job);
  const running = bench.load("http", job);
  const until = performance.now() + seconds * 1000 - 500;
  let changes = 0;
  while (performance.now() < until) {
    bench.sql(changes % 2 ? "notify pgrst, 'reload schema'" : `create table bench.change_${changes} (id int primary key, big_id int references bench.big)`, { database });
    changes++;
    await bench.sleep(250);
  }
  const changing = await running;
  if (changing.wrong > 0) throw new Error(`a request failed while the schema changed: ${changing.first_wrong}`);
  bench.sql("drop event trigger tell", { database });
  await bench.stopServer(started);
  return { quiet, changing, changes };
}
const changing = { postgres: await whileSchemaChanges("postgres"), many: await whileSchemaChanges("many") };
const delays = (name, { quiet, changing, changes }) => `| slowest request while the schema changes, ${name} | p99.9 ${bench.one(changing.p999_ms)} ms, max ${bench.one(changing.max_ms)} ms (${changes} changes) | quiet: p99.9 ${bench.one(quiet.p999_ms)} ms, max ${bench.one(quiet.max_ms)} ms | ≤ 5 ms later |`;

const firstByte = bench.median(reads.map((read) => read.first_byte_ms));
const total = bench.median(reads.map((read) => read.total_ms));
const psqlRead = bench.median(copies);
const [post, psqlInsert] = [bench.median(posts), bench.median(inserts)];
const twinText = ({ file, names }) => `\`\`\`\n${readFileSync(file, "utf8").trim()}\n\`\`\`\n\n${names.map(([name, value]) =>
  `- \`${name}\` = \`${String(value).replace(/Bearer [^"]*/, "Bearer …")}\``).join("\n")}`;
bench.publish(`# The REST API against its own SQL

\`just bench rest\`: ${head.text}

${connections} HTTP connections, ${poolSize} database connections of the server, ${connections} of pgbench; ${rounds} rounds of ${seconds} s each, server and twin
in turn, medians. The twin is pgbench (\`-M prepared\`, one round trip) running the statements that the server sent, taken from
PostgreSQL's log; its scripts for the first role are below. CPU in µs per request, from \`/proc\`, ended children included.
Aims in brackets. Without any load: ${bench.stillness(still)}.

| work | requests/s | p50 ms | p99 ms | twin's p99 ms | p99 scaled | twin/s | of the twin | CPU server | CPU PostgreSQL | CPU twin | total CPU to twin's |
|---|---|---|---|---|---|---|---|---|---|---|---|
${lines.join("\n")}

Scaled: what a p99 would be on the machine where its aim was set, whose twin does ${works.map(({ aimsTwin }) => bench.whole(aimsTwin)).join(", ")} of these a
second, as stated with the aims: p99 × this twin's rate ÷ that one's. It is calculated, not measured. With ${connections} requests always
in progress the average answer takes ${connections} ÷ rate.

Mixed roles: ${roles.length} roles, ${users.length} users in turn on every connection; ${bench.whole(checked)} responses compared with what that user may
see, 0 wrong (a wrong one ends the run). The aim's 10 million take a longer run.

| work | figure | beside it | aim |
|---|---|---|---|
| read of ${bench.whole(largeRows)} rows (${bench.whole(reads[0].bytes / 1e6)} MB): first byte | ${bench.one(firstByte)} ms | | ≤ 50 ms |
| … total | ${bench.two(total / 1000)} s | psql ${bench.two(psqlRead / 1000)} s: ratio ${bench.two(total / psqlRead)} | ≤ 1.2 |
| … memory grows at most by | ${bench.one(Math.max(...growth))} MB | | ≤ 16 MB |
| insert of ${bench.whole(bulkRows)} rows in one body | ${bench.two(post / 1000)} s | psql ${bench.two(psqlInsert / 1000)} s: speed ${bench.percent(psqlInsert / post)} | ≥ 75 % |
| resident memory idle | ${bench.one(idle)} MB | | ≤ 15 MB |
| resident memory after this load (not an hour) | ${bench.one(afterLoad)} MB | | ≤ 30 MB after an hour |
| exec to first 200, median of ${starts.postgres.length} | ${bench.one(bench.median(starts.postgres))} ms | ${bench.one(Math.min(...starts.postgres))} to ${bench.one(Math.max(...starts.postgres))} ms | ≤ 50 ms |
| … with ${bench.whole(tables)} tables | ${bench.two(bench.median(starts.many) / 1000)} s | ${bench.one(manyMemory)} MB | ≤ 0.7 s |
${delays("few tables", changing.postgres)}
${delays(`${bench.whole(tables)} tables`, changing.many)}

psql's read: \`${copy}\`, output discarded. psql's insert: the same body in \`json_to_recordset\`, sent as one statement.
Schema changes: four connections ask for one row each, a millisecond apart, while tables are created (announced by an event trigger) and
reloads are requested by \`NOTIFY\`, in turn, four times a second. Not measured here: an hour's load.

## The twin

${works.map((work, place) => `### ${work.name}\n\n${twinText(twins[place])}`).join("\n\n")}
`, values.write, head);
process.exit(0);
