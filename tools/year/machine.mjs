// The small machine of `just year`: one core and so much memory for the server, its PostgreSQL and its commands, held by the kernel. The
// supervisor starts a server that was killed again, as systemd would.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";

const root = new URL("../..", import.meta.url).pathname;
export const binary = process.env.FERROBASE_BIN ?? join(root, "target/release/ferrobase");
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// Of `supabase start`.
export const keys = {
  anon: "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0",
  service: "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU",
};

async function freePorts(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => done(server));
  })));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** A group of the kernel's memory controller; undefined where there is none or it may not be made. */
function memoryGroup(megabytes) {
  const one = "/sys/fs/cgroup/memory", two = "/sys/fs/cgroup";
  const isFirst = existsSync(join(one, "memory.limit_in_bytes"));
  const path = join(isFirst ? one : two, `ferrobase-year-${process.pid}`);
  const files = isFirst ? { limit: "memory.limit_in_bytes", most: "memory.max_usage_in_bytes", kills: "memory.oom_control" }
    : { limit: "memory.max", most: "memory.peak", kills: "memory.events" };
  try {
    mkdirSync(path);
    writeFileSync(join(path, files.limit), String(megabytes << 20));
  } catch {
    return undefined;
  }
  const read = (name) => readFileSync(join(path, name), "utf8");
  return {
    procs: join(path, "cgroup.procs"),
    /** The most memory that was ever used at once, in MB, with files that PostgreSQL and the kernel keep in it. */
    most: () => Math.round(Number(read(files.most)) / (1 << 20)),
    kills: () => Number(read(files.kills).match(/^oom_kill (\d+)$/m)?.[1] ?? 0),
    remove: () => {
      try {
        rmdirSync(path);
      } catch {
        // A process is left; the group goes with the machine.
      }
    },
  };
}

/** Makes the machine. `megabytes`: all its memory. */
export async function makeMachine(megabytes) {
  const folder = mkdtempSync(join(tmpdir(), "ferrobase-year-"));
  execFileSync("chmod", ["755", folder]);
  const data = join(folder, "data");
  const [api, db, inbox, admin] = await freePorts(4);
  const group = memoryGroup(megabytes);
  const core = String(availableParallelism() - 1);
  let settings = {
    FERROBASE_DEV: "true", FERROBASE_DATA_DIR: data, FERROBASE_SEED: "none", FERROBASE_LISTEN: `127.0.0.1:${api}`, FERROBASE_DB_PORT: String(db),
    FERROBASE_INBOX_LISTEN: `127.0.0.1:${inbox}`, FERROBASE_ADMIN_LISTEN: `127.0.0.1:${admin}`, GOTRUE_MAILER_AUTOCONFIRM: "true", RUST_LOG: "warn",
    // People have addresses of their own, which the replay names as a proxy would.
    FERROBASE_TRUSTED_PROXIES: "127.0.0.1", GOTRUE_RATE_LIMIT_EMAIL_SENT: "100000",
  };
  const env = (further) => {
    const own = Object.entries(process.env).filter(([name]) => !/^(PGRST|GOTRUE|FERROBASE|STORAGE|DATABASE|PG)_/.test(name));
    return { ...Object.fromEntries(own), ...settings, ...further };
  };
  // In the group and on the core before the program begins.
  const confined = (words) => ["-c", `${group ? `echo $$ >'${group.procs}' && ` : ""}exec taskset -c ${core} "$@"`, "sh", ...words];
  const log = openSync(join(folder, "server.log"), "a");
  let server, isWanted = false;
  const downtimes = [];
  const postmaster = () => {
    try {
      return Number(readFileSync(join(data, "db/postmaster.pid"), "utf8").split("\n")[0]);
    } catch {
      return undefined;
    }
  };

  const machine = {
    folder, data, api: `http://127.0.0.1:${api}`, database: `postgresql://postgres:postgres@127.0.0.1:${db}/postgres`, group, core, megabytes, downtimes,
    set: (further) => (settings = { ...settings, ...further }),
    unset: (name) => delete settings[name],

    /** Starts the server, and again whenever it ends without having been asked to. */
    start() {
      isWanted = true;
      server = spawn("sh", confined([binary, "serve"]), { cwd: folder, env: env({}), stdio: ["ignore", log, log] });
      server.once("exit", async () => {
        if (!isWanted) return;
        await sleep(1000);
        if (isWanted) machine.start();
      });
    },
    /** Waits until it serves; the seconds that took. */
    async serves(begun = performance.now()) {
      for (;;) {
        const answer = await fetch(`${machine.api}/health`).catch(() => undefined);
        if (answer?.ok) return (performance.now() - begun) / 1000;
        if (performance.now() - begun > 300_000) throw new Error(`it does not serve:\n${machine.log()}`);
        await sleep(50);
      }
    },
    async stop() {
      isWanted = false;
      if (!server || server.exitCode !== null || server.signalCode !== null) return;
      const ended = new Promise((done) => server.once("exit", done));
      server.kill("SIGTERM");
      await ended;
    },
    /** Kills the server and its PostgreSQL at once, as a lost power supply would. Yields the seconds until it served again. */
    async crash() {
      const begun = performance.now();
      const database = postmaster();
      server.kill("SIGKILL");
      if (database) process.kill(database, "SIGKILL");
      await sleep(100);
      const took = await machine.serves(begun);
      downtimes.push({ what: "crash", seconds: took });
      return took;
    },
    /** A command on the machine, beside the server or without it; what it printed. */
    run(words, further = {}) {
      const begun = performance.now();
      return new Promise((done, fail) => {
        const child = spawn("sh", confined([binary, ...words]), { cwd: folder, env: env(further), stdio: ["ignore", "pipe", "pipe"] });
        let text = "";
        for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (piece) => (text += piece));
        child.on("close", (code) => (code === 0 ? done({ text, seconds: (performance.now() - begun) / 1000 })
          : fail(new Error(`ferrobase ${words.join(" ")} ended with ${code}:\n${text}`))));
      });
    },
    sql(script) {
      const { status, stdout, stderr } = spawnSync("psql", ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", machine.database], { input: script, encoding: "utf8" });
      if (status !== 0) throw new Error(`psql: ${stderr}`);
      return stdout.trim();
    },
    /** The major version of the cluster in place. */
    version: () => readFileSync(join(data, "db/PG_VERSION"), "utf8").trim(),
    errors: (message) => readFileSync(join(folder, "server.log"), "utf8").split("\n").filter((line) => line.includes(message)),
    log: () => readFileSync(join(folder, "server.log"), "utf8").split("\n").slice(-30).join("\n"),
    // Files that go while `du` looks are no fault.
    size: (path) => Number(spawnSync("du", ["-sm", path], { encoding: "utf8" }).stdout.split("\t")[0] || 0),
    remove() {
      isWanted = false;
      server?.kill("SIGKILL");
      const database = postmaster();
      try {
        if (database) process.kill(database, "SIGKILL");
      } catch {
        // It has ended.
      }
      rmSync(folder, { recursive: true, force: true });
      group?.remove();
    },
  };
  return machine;
}
