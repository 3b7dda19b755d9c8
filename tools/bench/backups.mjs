// `just bench backups`: what backups cost while they run. The whole server on its own PostgreSQL is kept busy by reads and writes; in
// turns nothing is backed up, the log of changes is archived, and full and incremental archives are made: as a daily schedule makes them,
// which gives way to requests, and as a schedule without a pause does.
//
//   node tools/bench/backups.mjs [--seconds 60] [--rounds 3] [--megabytes 400] [--shared] [--write docs/reports/bench-backups.md]
//
// --shared: do not wait for a quiet machine, and say in the report that it was none. Environment: as rest.mjs.
import { execFileSync } from "node:child_process";
import { mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "60" }, rounds: { type: "string", default: "3" }, megabytes: { type: "string", default: "400" },
  shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const [seconds, rounds, megabytes] = [values.seconds, values.rounds, values.megabytes].map(Number);
const connections = 20;
// Of `supabase start`.
const anon = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0";

bench.requirePrograms();
if (values.write && !values.shared) await bench.waitForQuiet();
const folder = bench.makeFolder(() => {
  // PostgreSQL outlives a server that was killed.
  const postmaster = words(join(folder, "data/db/postmaster.pid")).split("\n")[0];
  if (postmaster) process.kill(Number(postmaster), "SIGQUIT");
});
execFileSync("chmod", ["755", folder]);
const [data, archives, migrations] = ["data", "archives", "migrations"].map((name) => join(folder, name));
mkdirSync(migrations);
writeFileSync(join(migrations, "0001_bench.sql"), `
create table public.item (id int primary key, owner text not null, label text not null);
insert into public.item select n, 'user-' || n % 30, 'label of item ' || n from generate_series(0, 8999) n;
create table public.entry (id bigint generated always as identity primary key, label text not null, amount int not null);
create table public.bulk as select n, extensions.gen_random_bytes(1000) noise from generate_series(1, ${megabytes * 950}) n;
alter table public.item enable row level security; alter table public.entry enable row level security;
create policy reads on public.item for select using (owner <> 'user-7');
create policy writes on public.entry for insert with check (amount > 0);
`);
const key = execFileSync(bench.binary, ["backup", "key", join(folder, "key.txt")], { encoding: "utf8" }).trim().replace(/^.*=/, "");
const port = bench.serverPort;
const settings = {
  FERROBASE_DEV: "true", FERROBASE_DATA_DIR: data, FERROBASE_MIGRATIONS: migrations, FERROBASE_LISTEN: `127.0.0.1:${port}`,
  FERROBASE_DB_PORT: String(bench.databasePort), FERROBASE_INBOX_LISTEN: `127.0.0.1:${port + 1}`, FERROBASE_ADMIN_LISTEN: `127.0.0.1:${port + 2}`,
};
const to = { FERROBASE_BACKUP_TO: archives, FERROBASE_BACKUP_RECIPIENT: key, FERROBASE_BACKUP_KEEP: "2" };
const always = "1ms"; // The next is begun when one has ended.
const day = { ...to, FERROBASE_BACKUP_EVERY: "24h" };
// `isDue`: the last archive is made to look old, so that the next one is begun as the server starts.
const modes = [
  { name: "no backups", settings: {} },
  { name: "the log of changes archived every 10 s", settings: { ...day, FERROBASE_BACKUP_LOG_EVERY: "10s" } },
  { name: "a full archive, giving way", settings: day, isDue: true },
  { name: "an incremental archive, giving way", settings: { ...day, FERROBASE_BACKUP_FULL_EVERY: "24h" }, isDue: true },
  { name: "incremental archives without a pause", settings: { ...to, FERROBASE_BACKUP_EVERY: always, FERROBASE_BACKUP_FULL_EVERY: "24h" } },
  { name: "full archives without a pause", settings: { ...to, FERROBASE_BACKUP_EVERY: always } },
];

const state = join(data, "backups/state.json");
/** Makes the last archive look as if it were an old one. */
function age() {
  const known = JSON.parse(readFileSync(state, "utf8"));
  known.made = { ...known.made, archive: "ferrobase-20260101T000000000Z.tar.gz.age", made_at: "2026-01-01T00:00:00Z" };
  writeFileSync(state, JSON.stringify(known));
}

async function start(further) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PGRST|GOTRUE|FERROBASE|DATABASE)_/.test(name)));
  const log = openSync(join(folder, "server.log"), "a");
  const child = bench.spawnApart(bench.binary, ["serve"], { env: { ...env, RUST_LOG: "warn", ...settings, ...further }, cwd: folder, stdio: ["ignore", log, log] });
  await bench.untilAnswered(child, "/health", join(folder, "server.log"));
  return { child, pid: child.pid };
}

function words(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // It has ended.
  }
}
const ticks = (stat) => {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
  return { parent: fields[1], own: fields[11] + fields[12], ended: fields[13] + fields[14], nice: fields[16] };
};
/**
 * Seconds of processor time that a backup has used until now: the server's threads of low priority, the programs that they have
 * started, and PostgreSQL's processes that send and summarize the log. Threads that have ended are known from before.
 */
function spent(server, known) {
  for (const thread of readdirSync(`/proc/${server.pid}/task`)) {
    const stat = words(`/proc/${server.pid}/task/${thread}/stat`);
    if (stat && ticks(stat).nice >= 10) known.set(`thread ${thread}`, ticks(stat).own);
  }
  const own = words(`/proc/${server.pid}/stat`);
  if (own) known.set("programs", ticks(own).ended);
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const command = words(`/proc/${pid}/cmdline`);
    if (!/walsender|walsummarizer|pg_basebackup/.test(command)) continue;
    const stat = words(`/proc/${pid}/stat`);
    // Programs that the server started count among its own when they have ended.
    if (stat && !/pg_basebackup/.test(command)) known.set(`process ${pid}`, ticks(stat).own);
  }
  return [...known.values()].reduce((sum, value) => sum + value, 0) / 100;
}
const made = () => {
  try {
    return readdirSync(archives).filter((name) => /^ferrobase-\d/.test(name) && name.endsWith(".age")).sort().at(-1) ?? "";
  } catch {
    return "";
  }
};

const reads = Array.from({ length: 1500 }, (_, turn) => (turn * 7) % 9000).filter((id) => id % 30 !== 7).map((id) => ({
  method: "GET", path: `/rest/v1/item?id=eq.${id}`, headers: { apikey: anon }, status: 200, expect: `"label":"label of item ${id}"`,
}));
const write = { method: "POST", path: "/rest/v1/entry", headers: { apikey: anon, "Content-Type": "application/json", Prefer: "return=minimal" },
  body: JSON.stringify({ label: "an entry of some length", amount: 7 }), status: 201 };
const requests = reads.flatMap((read, turn) => (turn % 4 === 3 ? [read, write] : [read]));
const cores = readFileSync("/proc/cpuinfo", "utf8").match(/^processor/gm).length;

let head;
const seen = modes.map(() => ({ rate: [], p99: [], cpu: [], archives: 0 }));
for (let round = 0; round < rounds; round++) {
  const inTurn = [...modes.entries()];
  for (const [n, mode] of round % 2 ? inTurn.reverse() : inTurn) {
    rmSync(archives, { recursive: true, force: true });
    rmSync(state, { force: true });
    let server = await start(mode.settings);
    if (!head) {
      process.env.PGPASSWORD = "postgres";
      head = bench.circumstances({ isShared: values.shared });
    }
    if (mode.settings.FERROBASE_BACKUP_TO) {
      // The first archive is no part of what is measured, but where full ones are.
      while (!made()) await bench.sleep(100);
    }
    // The archive that a new chain of the log begins with is no part either.
    const chain = () => words(join(data, "backups/log.json")).match(/"chain":\s*"(\w+)"/)?.[1];
    if (mode.settings.FERROBASE_BACKUP_LOG_EVERY) while (!chain() || !words(state).includes(chain())) await bench.sleep(100);
    if (mode.isDue) {
      while (!words(state).includes("made_at")) await bench.sleep(100);
      await bench.stopServer(server);
      age();
      server = await start(mode.settings);
    }
    await bench.load("http", { connections, seconds: 2, requests });
    const known = new Map();
    const before = spent(server, known);
    const names = new Set();
    const watch = setInterval(() => {
      spent(server, known);
      names.add(made());
    }, 200);
    const begun = performance.now();
    const run = await bench.load("http", { connections, seconds, requests });
    const wall = (performance.now() - begun) / 1000;
    clearInterval(watch);
    if (run.wrong > 0) throw new Error(`${mode.name}: ${run.first_wrong}`);
    const used = spent(server, known) - before;
    seen[n].rate.push(run.per_second);
    seen[n].p99.push(run.p99_ms);
    seen[n].cpu.push(used / (wall * cores));
    seen[n].archives += Math.max(0, names.size - 1);
    await bench.stopServer(server);
    console.error(`${mode.name}: ${bench.whole(run.per_second)}/s, ${(100 * seen[n].cpu.at(-1)).toFixed(1)} % of the cores, ${names.size - 1} archives`);
  }
}
const size = Number(execFileSync("du", ["-sm", join(data, "db")], { encoding: "utf8" }).split("\t")[0]);
const plain = bench.median(seen[0].rate);
const rows = modes.map(({ name }, n) => {
  const { rate, p99, cpu, archives: count } = seen[n];
  // Beside the run without backups of the same round.
  const kept = bench.median(rate.map((value, round) => value / seen[0].rate[round]));
  return `| ${[name, bench.whole(bench.median(rate)), n === 0 ? "" : `${bench.one((1 - kept) * 100)} %`, `${bench.one(bench.median(p99))} ms`,
    n === 0 ? "" : `${bench.one(bench.median(cpu) * 100)} %`, n < 2 ? "" : count].join(" | ")} |`;
});
const spread = (Math.max(...seen[0].rate) - Math.min(...seen[0].rate)) / plain;
bench.publish(`# What backups cost

\`just bench backups\`: ${head.text}

The whole server with its embedded PostgreSQL, ${size} MiB of it, is kept busy by ${connections} connections that ask without a pause: four reads of a row
under row level security to one insert. ${rounds} rounds of ${seconds} s each; medians. "Costs" is what was served less than without backups in the same
round; the runs without backups differ by ${bench.one(spread * 100)} % among themselves. "Processor" is the share of all cores that the backups used: the
server's threads of low priority, \`pg_basebackup\`, and PostgreSQL's processes that send and summarize the log; what PostgreSQL's checkpoints
cost more is in the first figure only. Aims: ≤ 10 % of what is served, ≤ 3 % of the processor.

| while | requests/s | costs | p99 | processor | archives |
|---|---|---|---|---|---|
${rows.join("\n")}

An archive is made at a low priority: on cores that have nothing else to do it takes all that it can. One that gives way, as those of a daily
schedule do, also pauses while the cores are busy, for five minutes in all. One without a pause is what a command makes, or a schedule of less than an hour.
`, values.write, head);
process.exit(0);
