// PostgreSQL under Patroni with two nodes and synchronous replication, and a server connected by a URL with both hosts:
// the primary is killed while rows are written, answers resume within ten seconds of the promotion, and no acknowledged
// row is lost.
//   node failover.mjs BINARY DEBIAN_FOLDER POSTGRES_BIN
// DEBIAN_FOLDER contains Debian's packages patroni, etcd-server and their Python modules, unpacked and readable for
// everybody.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [binary, debian, postgres] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "ferrobase-failover-"));
chmodSync(folder, 0o755);
const guard = spawn(process.execPath, ["tools/free-ports.mjs", "8"], { stdio: ["ignore", "pipe", "inherit"] });
const [line] = await once(guard.stdout.setEncoding("utf8"), "data");
const [etcdPort, etcdPeer, pg1, pg2, api1, api2, port, admin] = line.trim().split(" ").map(Number);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const step = (text) => console.log(`ok  ${text}`);
const children = [];

async function until(what, isSo, seconds = 120) {
  for (const deadline = Date.now() + seconds * 1000; ; ) {
    if (await isSo()) return;
    if (Date.now() > deadline) throw new Error(`it never came about: ${what}`);
    await pause(100);
  }
}

// PostgreSQL does not run as root. Each child leads its own process group, so that it can be killed with all its
// children.
const isRoot = process.getuid() === 0;
const nobody = 65534;
function start(name, program, args, env = {}) {
  const log = openSync(join(folder, `${name}.log`), "a");
  const all = isRoot && name !== "server" ? ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups", program, ...args] : [program, ...args];
  const child = spawn(all[0], all.slice(1), {
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    cwd: folder,
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  children.push(child);
  return child;
}
const own = (path) => {
  mkdirSync(path, { mode: 0o700 });
  if (isRoot) chownSync(path, nobody, nobody);
  return path;
};

const python = { PYTHONPATH: join(debian, "usr/lib/python3/dist-packages"), PYTHONDONTWRITEBYTECODE: "1" };
const node = (name, pgPort, apiPort) => {
  const data = join(own(join(folder, name)), "data");
  const config = `
scope: ferrobase
name: ${name}
restapi: { listen: "127.0.0.1:${apiPort}", connect_address: "127.0.0.1:${apiPort}" }
etcd3: { host: "127.0.0.1:${etcdPort}" }
bootstrap:
  dcs:
    # As short as Patroni allows: a primary that is silent for so many seconds is replaced.
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: { wal_level: logical, max_connections: 100, max_replication_slots: 10, max_wal_senders: 10, fsync: "on" }
  initdb: [ { encoding: UTF8 }, { locale: C.UTF-8 }, data-checksums ]
postgresql:
  listen: "127.0.0.1:${pgPort}"
  connect_address: "127.0.0.1:${pgPort}"
  data_dir: ${data}
  bin_dir: ${postgres}
  pgpass: ${join(folder, name, "pgpass")}
  authentication:
    superuser: { username: postgres, password: root-of-all }
    replication: { username: replicator, password: follows }
  parameters: { unix_socket_directories: ${join(folder, name)} }
  pg_hba:
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication replicator 127.0.0.1/32 scram-sha-256
`;
  const path = join(folder, `${name}.yml`);
  writeFileSync(path, config);
  const run = () => start(name, "/usr/bin/python3", [join(debian, "usr/bin/patroni"), path], python);
  return { name, pgPort, apiPort, run };
};

const role = async ({ apiPort }, path) => {
  try {
    return (await fetch(`http://127.0.0.1:${apiPort}/${path}`)).status === 200;
  } catch {
    return false;
  }
};
const url = `postgresql://postgres:root-of-all@127.0.0.1:${pg1},127.0.0.1:${pg2}/postgres?target_session_attrs=read-write`;
const psql = (pgPort, text) => {
  const run = spawnSync("psql", ["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", `postgresql://postgres:root-of-all@127.0.0.1:${pgPort}/postgres`, "-c", text], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.trim();
};

try {
  start("etcd", join(debian, "usr/bin/etcd"), [
    "--data-dir", own(join(folder, "etcd")),
    "--listen-client-urls", `http://127.0.0.1:${etcdPort}`, "--advertise-client-urls", `http://127.0.0.1:${etcdPort}`,
    "--listen-peer-urls", `http://127.0.0.1:${etcdPeer}`, "--initial-advertise-peer-urls", `http://127.0.0.1:${etcdPeer}`,
    "--initial-cluster", `default=http://127.0.0.1:${etcdPeer}`,
  ]);
  const nodes = [node("one", pg1, api1), node("two", pg2, api2)];
  nodes[0].child = nodes[0].run();
  await until("the first node is primary", () => role(nodes[0], "primary"));
  nodes[1].child = nodes[1].run();
  await until("the second one follows synchronously", () => role(nodes[1], "synchronous"));
  step("two nodes under Patroni, the second one a synchronous replica");

  const keys = Object.fromEntries(
    spawnSync(binary, ["keys", "generate"], { encoding: "utf8" }).stdout.trim().split("\n").map((text) => text.split(/=(.*)/s).slice(0, 2)),
  );
  const server = start("server", binary, ["serve"], {
    ...keys,
    DATABASE_URL: url,
    FERROBASE_DATA_DIR: join(folder, "data"),
    FERROBASE_LISTEN: `127.0.0.1:${port}`,
    FERROBASE_ADMIN_LISTEN: `127.0.0.1:${admin}`,
    FERROBASE_MAIL: "drop",
    FERROBASE_USER: "root",
    SITE_URL: `http://127.0.0.1:${port}`,
    RUST_LOG: "warn",
  });
  const base = `http://127.0.0.1:${port}`;
  const service = { apikey: keys.SB_SECRET_KEY, "content-type": "application/json" };
  await until("the server answers", async () => {
    assert.equal(server.exitCode, null);
    try {
      return (await fetch(`${base}/health`)).ok;
    } catch {
      return false;
    }
  });
  psql(pg1, "create table public.ledger (n bigint primary key); alter table public.ledger enable row level security; grant all on public.ledger to service_role; notify pgrst, 'reload schema'");
  await until("the table is served", async () => (await fetch(`${base}/rest/v1/ledger?limit=1`, { headers: service })).ok);

  // Four writers insert each row once; an answer of 201 counts as acknowledged. A fifth requests accounts.
  const acknowledged = [];
  const answers = { rest: [], auth: [] };
  let [next, writing, other] = [0, true, {}];
  const attempt = async (kind, path, init) => {
    try {
      const answer = await fetch(`${base}${path}`, { ...init, headers: service, signal: AbortSignal.timeout(15_000) });
      await answer.arrayBuffer();
      if (answer.ok) answers[kind].push(Date.now());
      else other[answer.status] = (other[answer.status] ?? 0) + 1;
      return answer.status;
    } catch (error) {
      other[error.name] = (other[error.name] ?? 0) + 1;
      return 0;
    }
  };
  const writers = Array.from({ length: 4 }, async () => {
    while (writing) {
      const n = next++;
      if ((await attempt("rest", "/rest/v1/ledger", { method: "POST", body: JSON.stringify({ n }) })) === 201) acknowledged.push(n);
      await pause(10);
    }
  });
  writers.push((async () => {
    while (writing) {
      await attempt("auth", "/auth/v1/admin/users?per_page=1", {});
      await pause(50);
    }
  })());
  await until("rows are written", () => acknowledged.length > 200);

  const killed = Date.now();
  // The whole node, as when its machine loses power: Patroni and every PostgreSQL process.
  const family = spawnSync("pgrep", ["-f", join(folder, "one", "data")], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map(Number);
  const postmaster = Number(readFileSync(join(folder, "one/data/postmaster.pid"), "utf8").split("\n")[0]);
  const backends = spawnSync("pgrep", ["-P", String(postmaster)], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map(Number);
  process.kill(-nodes[0].child.pid, "SIGKILL");
  for (const pid of [postmaster, ...family, ...backends]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended with the others.
    }
  }
  await until("the second node is primary", () => role(nodes[1], "primary"));
  const promoted = Date.now();
  for (const kind of ["rest", "auth"]) {
    await until(`${kind} answers again`, () => answers[kind].some((at) => at > promoted), 60);
  }
  const resumed = ["rest", "auth"].map((kind) => answers[kind].find((at) => at > promoted) - promoted);
  const before = acknowledged.length;
  await until("rows are written again", () => acknowledged.length > before + 100);
  writing = false;
  await Promise.all(writers);
  assert.ok(Math.max(...resumed) <= 10_000, `answers resumed ${resumed} ms after the promotion`);
  const there = new Set(psql(pg2, "select n from public.ledger").split("\n").map(Number));
  const lost = acknowledged.filter((n) => !there.has(n));
  assert.deepEqual(lost, []);
  step(
    `killed under load: promoted after ${((promoted - killed) / 1000).toFixed(1)} s; REST resumed ${resumed[0]} ms and auth ${resumed[1]} ms later; ` +
      `${acknowledged.length} rows acknowledged, 0 lost; other answers meanwhile: ${JSON.stringify(other)}`,
  );

  // The old primary comes back as a replica and receives no writes.
  nodes[0].child = nodes[0].run();
  await until("the first node follows", () => role(nodes[0], "replica"));
  await until("it is synchronous again", () => role(nodes[0], "synchronous"));
  const n = next++;
  assert.equal(await attempt("rest", "/rest/v1/ledger", { method: "POST", body: JSON.stringify({ n }) }), 201);
  assert.equal(psql(pg2, `select count(*) from public.ledger where n = ${n}`), "1");
  step("the old primary comes back as a replica");
  process.kill(server.pid, "SIGTERM");
  await once(server, "exit");
} catch (error) {
  for (const name of ["one", "two", "server"]) {
    try {
      console.error(`--- ${name}\n${readFileSync(join(folder, `${name}.log`), "utf8").split("\n").slice(-25).join("\n")}`);
    } catch {
      // not that far yet
    }
  }
  throw error;
} finally {
  for (const child of children) {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // gone
    }
  }
  for (const name of ["one", "two"]) {
    // The postmaster leads its own session.
    try {
      process.kill(Number(readFileSync(join(folder, name, "data/postmaster.pid"), "utf8").split("\n")[0]), "SIGQUIT");
    } catch {
      // gone
    }
  }
  await pause(500);
  guard.kill();
  rmSync(folder, { recursive: true, force: true });
}
