// The benchmark's PostgreSQL cluster, the server under test, and the kernel's figures for both.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";

const root = new URL("../..", import.meta.url).pathname;
export const binary = process.env.FERROBASE_BIN ?? join(root, "target/release/ferrobase");
const generator = process.env.LOAD_BIN ?? join(root, "target/release/examples/load");
const dbPort = Number(process.env.BENCH_DB_PORT ?? 55340);
export const databasePort = dbPort;
export const serverPort = Number(process.env.BENCH_PORT ?? 55341);
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const running = [];
let folder;

/** Gives the load generator a core of its own, the last, and the others to PostgreSQL and the servers. Before any of them is started. */
export function keepCoresApart() {
  const last = availableParallelism() - 1;
  if (last < 1) throw new Error("bench: one core cannot be divided");
  cores = { generator: String(last), served: `0-${last - 1}` };
}
let cores;
const onCores = (which, command) => (cores ? ["taskset", "-c", cores[which], ...command] : command);

/** Exits with one line if a required program is missing. */
export function requirePrograms() {
  const missing = ["psql", "pgbench"].filter((name) => spawnSync(name, ["--version"]).error);
  if (missing.length > 0) {
    console.error(`bench: ${missing.join(" and ")} must be on PATH (Debian: apt-get install postgresql-contrib)`);
    process.exit(1);
  }
}

function binFolder() {
  if (process.env.PG_BIN_DIR) return process.env.PG_BIN_DIR;
  try {
    const newest = readdirSync("/usr/lib/postgresql").sort((a, b) => Number(b) - Number(a))[0];
    if (newest) return `/usr/lib/postgresql/${newest}/bin`;
  } catch {
    // No Debian layout: the variable below names the folder.
  }
  console.error("bench: set PG_BIN_DIR to the folder with initdb, pg_ctl and postgres");
  process.exit(1);
}

/** Makes the benchmark's folder. At the end its programs are killed, `stop` is called, and the folder is removed. */
export function makeFolder(stop = () => {}) {
  folder = mkdtempSync(join(tmpdir(), "ferrobase-bench-"));
  process.on("exit", () => {
    // Each leads its own process group, because nginx's workers would outlive their master.
    for (const child of running) {
      try {
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // Already ended.
      }
    }
    try {
      stop();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
  return folder;
}

/** Starts a fresh cluster (fsync as shipped: on), with further settings. It ends with the benchmark. */
export function startCluster(further = []) {
  let stop = () => {};
  makeFolder(() => stop());
  const bin = binFolder();
  const isRoot = process.getuid() === 0;
  if (isRoot) {
    const id = (flag) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
    chownSync(folder, id("-u"), id("-g"));
  }
  const owner = (program, args) => {
    const words = [join(bin, program), ...args];
    // pg_ctl's child keeps the output open: it is sent to the log, not to a pipe.
    const command = onCores("served", isRoot ? ["setpriv", "--reuid", "nobody", "--clear-groups", ...words] : words);
    execFileSync(command[0], command.slice(1), { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  };
  const data = join(folder, "data");
  owner("initdb", ["-D", data, "-A", "trust", "-U", "postgres", "--no-instructions"]);
  const settings = [
    `-p ${dbPort}`, `-k ${folder}`, "-c listen_addresses=127.0.0.1", "-c max_connections=200",
    "-c shared_buffers=256MB", "-c log_line_prefix=%c@@", "-c max_wal_size=4GB", ...further,
  ];
  owner("pg_ctl", ["-D", data, "-s", "-w", "-l", join(folder, "log"), "-o", settings.join(" "), "start"]);
  stop = () => owner("pg_ctl", ["-D", data, "-m", "immediate", "-s", "stop"]);
  const postmaster = Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
  return { folder, postmaster };
}

export const uri = (user, database = "postgres") => `postgresql://${user}@127.0.0.1:${dbPort}/${database}`;

/** Runs a script as superuser; returns psql's unaligned output. */
export function sql(script, { user = "postgres", database = "postgres", output = "pipe" } = {}) {
  const result = spawnSync("psql", ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", uri(user, database)], {
    input: script, encoding: "utf8", stdio: ["pipe", output, "pipe"], maxBuffer: 1 << 28,
  });
  if (result.status !== 0) throw new Error(`psql: ${result.stderr}`);
  return (result.stdout ?? "").trim();
}

/**
 * Starts a program in its own session, as an init system or container would: Linux may divide the cores between
 * sessions, and the server would share its portion with the load generator. It still ends with the benchmark.
 */
export function spawnApart(program, words, options) {
  const [first, ...others] = onCores(program === generator ? "generator" : "served", [program, ...words]);
  const child = spawn(first, others, { ...options, detached: true });
  running.push(child);
  child.once("exit", () => running.splice(running.indexOf(child), 1));
  return child;
}

/** Starts the server (`program`, if not the usual one) and waits for its first 200; returns the process and the milliseconds since exec. */
export async function startServer(only, settings, path, program = binary) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PGRST|GOTRUE|FERROBASE|DATABASE)_/.test(name)));
  const log = openSync(join(folder, `${only}.log`), "a");
  const begin = performance.now();
  const child = spawnApart(program, ["serve", "--only", only], { env: { ...env, RUST_LOG: "warn", ...settings }, cwd: folder, stdio: ["ignore", log, log] });
  closeSync(log);
  const firstMs = await untilAnswered(child, path, join(folder, `${only}.log`), begin);
  return { child, pid: child.pid, firstMs };
}

/** Waits until a server answers a path with 200; the milliseconds since `begin`. */
export async function untilAnswered(child, path, log, begin = performance.now()) {
  for (;;) {
    if (await answers200(path)) return performance.now() - begin;
    if (child.exitCode !== null || performance.now() - begin > 60_000) {
      throw new Error(`the server did not start: ${readFileSync(log, "utf8").slice(-2000)}`);
    }
    await sleep(1);
  }
}

function answers200(path) {
  return new Promise((done) => {
    const socket = createConnection(serverPort, "127.0.0.1");
    let text = "";
    socket.on("connect", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`));
    socket.on("data", (piece) => {
      text += piece;
      done(/^HTTP\/1\.1 200/.test(text));
      socket.destroy();
    });
    socket.on("error", () => done(false));
    socket.on("close", () => done(false));
  });
}

export async function stopServer(server) {
  const ended = new Promise((done) => server.child.once("exit", done));
  server.child.kill("SIGTERM");
  await ended;
}

/** Runs the load generator without blocking, so that two can run beside each other. */
export function load(mode, ...words) {
  const given = words.map((word) => {
    if (typeof word !== "object") return String(word);
    const file = join(folder, `job-${mode}-${Math.random().toString(36).slice(2)}.json`);
    writeFileSync(file, JSON.stringify({ address: `127.0.0.1:${serverPort}`, ...word }));
    return file;
  });
  return new Promise((done, fail) => {
    const child = spawnApart(generator, [mode, ...given], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (piece) => (text += piece));
    child.on("error", fail);
    child.on("exit", (code) => (code === 0 ? done(JSON.parse(text)) : fail(new Error(`load ${mode} ended with ${code}`))));
  });
}

/** The result of `load pauses` in words: pauses of the machine itself, which are part of every measured latency. */
export const stillness = ({ share, longest_ms }) =>
  `its cores stalled (for more than 0.2 ms at a time) for ${one(share * 100)} % of the time, ${one(longest_ms)} ms at the longest`;

/** One response through fetch, for preparing data. */
export async function call(path, init) {
  const response = await fetch(`http://127.0.0.1:${serverPort}${path}`, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return text === "" ? null : JSON.parse(text);
}

// `USER_HZ`: 100 on every Linux that Node.js runs on, whatever the kernel's own tick.
const ticksPerSecond = 100;

function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { parent: Number(fields[1]), own: Number(fields[11]) + Number(fields[12]), ended: Number(fields[13]) + Number(fields[14]) };
  } catch {
    return null; // It ended between the listing and the reading; its parent counts it from now on.
  }
}

/** CPU time in µs that a process, its living children and its ended children have used. */
export function cpuOf(pid) {
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const it = stat(name);
    if (it && (Number(name) === pid || it.parent === pid)) ticks += it.own + it.ended;
  }
  return (ticks * 1e6) / ticksPerSecond;
}

/** Resident memory in MB now (`VmRSS`), or the most since `resetPeak` (`VmHWM`). */
export function memory(pid, field = "VmRSS") {
  const line = readFileSync(`/proc/${pid}/status`, "utf8").match(new RegExp(`${field}:\\s+(\\d+)`));
  return Number(line[1]) / 1024;
}

export const resetPeak = (pid) => writeFileSync(`/proc/${pid}/clear_refs`, "5");

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
export const whole = (value) => Math.round(value).toLocaleString("en");
export const one = (value) => value.toFixed(1);
export const two = (value) => value.toFixed(2);
export const percent = (value) => `${Math.round(value * 100)} %`;

/** Waits up to five minutes for a load average below one: the build just before a run leaves a high one behind. */
export async function waitForQuiet() {
  for (let turn = 0; turn < 60 && Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]) > 0.9; turn++) await sleep(5000);
}

/** The machine and the builds, for the head of a report. `isShared`: other programs are known to run beside. */
export function circumstances({ isShared = false } = {}) {
  const cpu = readFileSync("/proc/cpuinfo", "utf8");
  const model = cpu.match(/model name\s*:\s*(.*)/)?.[1] ?? "unknown processor";
  const processors = [...cpu.matchAll(/^processor/gm)].length;
  const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
  const loadBefore = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
  const isRelease = binary.includes("/release/");
  const build = isRelease ? "release build" : "debug build (its figures say nothing about speed)";
  const version = sql("show server_version");
  const note = isShared ? " Other programs shared the cores all the while: times are longer and rates lower than they would be alone, so look at the ratios and at the CPU time." : "";
  return { isRelease, isShared, loadBefore, text:
    `${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${build}; ${processors} × ${model}; PostgreSQL ${version}, fsync on; ` +
    `load average before the run ${loadBefore}. ${cores ? "The load generator has the last core, server and PostgreSQL the others." : "Load generator, server and PostgreSQL share these cores."}${note}` };
}

/** Prints a report, and writes it to `file` if its figures are worth keeping: a release build on a quiet machine, or on one that the report calls shared. */
export function publish(text, file, { isRelease, isShared, loadBefore }) {
  console.log(text);
  if (!file) return;
  const reason = !isRelease ? "this is no release build" : loadBefore > 1 && !isShared ? `the load average before the run was ${loadBefore}` : null;
  if (reason) {
    console.error(`bench: ${file} is not written: ${reason}`);
    process.exit(1);
  }
  writeFileSync(file, text);
}
