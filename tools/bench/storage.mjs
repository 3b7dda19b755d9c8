// `just bench storage`: uploads and signed downloads of 10 kB, and 200 MB and 2 GB in both directions, compared with
// plain files and fsync, with rows written by pgbench, and with nginx (Debian's package), on the same cores and disk.
//
//   node tools/bench/storage.mjs [--seconds 8] [--rounds 3] [--write docs/reports/bench-storage.md]
//
// Environment: FERROBASE_BIN, LOAD_BIN, PG_BIN_DIR, BENCH_DB_PORT, BENCH_PORT.
import { createHmac } from "node:crypto";
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import * as bench from "./cluster.mjs";

const connections = 8;

/** Writes files and syncs each with its folder entry; with `apart`, each in a synced folder of its own, as in Supabase's layout. */
function writeFiles({ folder, size, seconds, name, apart }) {
  const body = Buffer.alloc(size, "x");
  const target = join(folder, name);
  mkdirSync(target, { recursive: true });
  const directory = openSync(target, "r");
  const end = performance.now() + seconds * 1000;
  let files = 0;
  while (performance.now() < end) {
    const temporary = join(target, `.${files}`);
    const file = openSync(temporary, "w", 0o600);
    writeSync(file, body);
    fsyncSync(file);
    closeSync(file);
    const own = join(target, `${files}`);
    if (apart) {
      mkdirSync(own);
      fsyncSync(directory);
      renameSync(temporary, join(own, "version"));
      const inner = openSync(own, "r");
      fsyncSync(inner);
      closeSync(inner);
    } else {
      renameSync(temporary, own);
      fsyncSync(directory);
    }
    files += 1;
  }
  return files;
}

if (!isMainThread) {
  parentPort.postMessage(writeFiles(workerData));
  process.exit(0);
}

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "8" }, rounds: { type: "string", default: "3" }, write: { type: "string" },
  shared: { type: "boolean", default: false },
} });
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
bench.requirePrograms();
const nginx = spawnSync("nginx", ["-v"]).error ? null : "nginx";
if (!nginx) console.error("bench: without nginx (Debian: apt-get install nginx-light) there is nothing beside the downloads");
if (values.write && !values.shared) await bench.waitForQuiet();
const cluster = bench.startCluster();
const head = bench.circumstances({ isShared: values.shared });
const folder = cluster.folder;
execFileSync("chmod", ["755", folder]);
const secret = "bench-secret-of-forty-characters-0123456";
const token = (claims) => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
};
const service = token({ role: "service_role", exp: 4_000_000_000 });
const authorization = { Authorization: `Bearer ${service}` };

// The binary creates the platform's schemas. Then the server runs alone.
const migrations = join(folder, "migrations");
mkdirSync(migrations);
writeFileSync(join(migrations, "20260101000000_none.sql"), "select 1;");
const files = join(folder, "files");
const env = { ...process.env, DATABASE_URL: bench.uri("postgres"), JWT_SECRET: secret };
execFileSync(bench.binary, ["migrate", "--dir", migrations], { env, cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
const server = await bench.startServer("storage", {
  DATABASE_URL: bench.uri("postgres"), SERVER_HOST: "127.0.0.1", SERVER_PORT: String(bench.serverPort), AUTH_JWT_SECRET: secret,
  FERROBASE_STORAGE_DIR: files, UPLOAD_FILE_SIZE_LIMIT: "3000000000",
}, "/status");
const post = (path, body) => bench.call(path, { method: "POST", headers: { ...authorization, "Content-Type": "application/json" }, body: JSON.stringify(body) });
await post("/bucket", { name: "bench", public: true });
const idle = bench.memory(server.pid);

async function measure(work) {
  const before = [bench.cpuOf(server.pid), bench.cpuOf(cluster.postmaster)];
  const figure = await bench.load("http", { connections, seconds, ...work });
  if (figure.wrong > 0) throw new Error(`${figure.wrong} wrong responses, the first: ${figure.first_wrong}`);
  return { ...figure, server: (bench.cpuOf(server.pid) - before[0]) / figure.requests,
    postgres: (bench.cpuOf(cluster.postmaster) - before[1]) / figure.requests };
}

// Uploads of 10 kB to new keys, compared with plain files written by as many threads.
const small = join(folder, "small.txt");
writeFileSync(small, "x".repeat(10_000));
/** Files per second, written by one thread per connection. */
async function plainFiles(name, apart) {
  const written = await Promise.all(Array.from({ length: connections }, (_, n) => new Promise((done, fail) => {
    const workerData = { folder: join(folder, name), size: 10_000, seconds, name: `t${n}`, apart };
    new Worker(new URL(import.meta.url), { workerData }).once("message", done).once("error", fail);
  })));
  return written.reduce((sum, n) => sum + n, 0) / seconds;
}

/** Transactions per second as service_role, by one session per connection. */
function transactions(statements) {
  const script = join(folder, "transaction.sql");
  writeFileSync(script, `\\set key random(1, 1000000000)\nbegin;\nselect set_config('role', 'service_role', true);\n${statements}\ncommit;\n`);
  const text = execFileSync("pgbench", ["-n", "-M", "prepared", "-c", connections, "-j", "2", "-T", seconds, "-f", script, bench.uri("postgres")].map(String),
    { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return Number(text.match(/tps = ([\d.]+)/)[1]);
}

// What is asked before a byte is written, and the row that is written afterwards.
const asks = `select id, public, file_size_limit, allowed_mime_types from storage.buckets where id = 'bench';
select id, version from storage.objects where bucket_id = 'bench' and name = 'none/' || :key::text;`;
const writes = `insert into storage.objects (bucket_id, name, version, metadata) values ('bench', gen_random_uuid()::text, gen_random_uuid()::text,
  '{"size": 10000, "mimetype": "text/plain", "cacheControl": "no-cache", "contentLength": 10000, "httpStatusCode": 200}');`;

let run = 0;
const up = [], plain = [], apart = [], asked = [], written = [];
for (let round = 0; round < rounds; round++) {
  run += 1;
  up.push(await measure({ requests: [{
    method: "POST", path: `/object/bench/r${run}/{{count}}`, body_file: small, status: 200, expect: '"Key"',
    headers: { ...authorization, "Content-Type": "text/plain" },
  }] }));
  plain.push(await plainFiles(`plain-${round}`, false));
  apart.push(await plainFiles(`apart-${round}`, true));
  asked.push(transactions(asks));
  written.push(transactions(writes));
}

// nginx serves the same files.
const nginxPort = bench.serverPort + 1;
if (nginx) {
  const conf = join(folder, "nginx.conf");
  writeFileSync(conf, `user root; worker_processes ${head.cores ?? 2}; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log; daemon off;
    events { worker_connections 512; }
    http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; default_type text/plain;
      server { listen 127.0.0.1:${nginxPort}; root ${folder}/www; } }`);
  mkdirSync(join(folder, "www"));
  writeFileSync(join(folder, "www/small"), "x".repeat(10_000));
  bench.spawnApart(nginx, ["-c", conf, "-p", folder], { stdio: "ignore" });
  await bench.sleep(500);
}
const links = await Promise.all(Array.from({ length: 64 }, async (_, n) => (await post(`/object/sign/bench/r1/${n}`, { expiresIn: 3600 })).signedURL));
const down = [], served = [];
for (let round = 0; round < rounds; round++) {
  down.push(await measure({ requests: links.map((path) => ({ method: "GET", path, status: 200, expect: "xxxxxxxx" })) }));
  if (nginx) {
    served.push((await bench.load("http", { address: `127.0.0.1:${nginxPort}`, connections, seconds,
      requests: [{ method: "GET", path: "/small", status: 200, expect: "xxxxxxxx" }] })).per_second);
  }
}

// Large bodies with curl, one at a time.
const megabytes = (bytes, begin) => bytes / 1e6 / ((performance.now() - begin) / 1000);
const curl = (args) => execFileSync("curl", ["-sS", "-f", "-o", "/dev/null", ...args], { stdio: ["ignore", "ignore", "inherit"] });
async function large(bytes, name, times) {
  const source = join(folder, name);
  execFileSync("sh", ["-c", `head -c ${bytes} /dev/urandom > ${source}`]);
  const figures = { up: [], down: [], cp: [], md5: [], both: [], nginx: [], memory: [] };
  for (let round = 0; round < times; round++) {
    bench.resetPeak(server.pid);
    const before = bench.memory(server.pid);
    let begin = performance.now();
    curl(["-X", "POST", "-H", `Authorization: Bearer ${service}`, "-H", "x-upsert: true", "-H", "Content-Type: application/octet-stream",
      "-T", source, `http://127.0.0.1:${bench.serverPort}/object/bench/${name}`]);
    figures.up.push(megabytes(bytes, begin));
    begin = performance.now();
    curl([`http://127.0.0.1:${bench.serverPort}/object/public/bench/${name}`]);
    figures.down.push(megabytes(bytes, begin));
    figures.memory.push(bench.memory(server.pid, "VmHWM") - before);
    const copy = join(folder, `${name}.copy`);
    begin = performance.now();
    execFileSync("dd", [`if=${source}`, `of=${copy}`, "bs=1M", "conv=fsync", "status=none"]);
    figures.cp.push(megabytes(bytes, begin));
    begin = performance.now();
    execFileSync("md5sum", [source], { stdio: "ignore" });
    figures.md5.push(megabytes(bytes, begin));
    const [pipe, other] = [join(folder, "pipe"), join(folder, `${name}.both`)];
    execFileSync("mkfifo", [pipe]);
    begin = performance.now();
    execFileSync("sh", ["-c", `md5sum ${pipe} >/dev/null & tee ${pipe} < ${source} | dd of=${other} bs=1M iflag=fullblock conv=fsync status=none; wait`]);
    figures.both.push(megabytes(bytes, begin));
    rmSync(pipe);
    rmSync(other);
    if (nginx) {
      renameSync(copy, join(folder, "www", name));
      begin = performance.now();
      curl([`http://127.0.0.1:${nginxPort}/${name}`]);
      figures.nginx.push(megabytes(bytes, begin));
    }
    rmSync(copy, { force: true });
  }
  const size = statSync(source).size;
  rmSync(source);
  rmSync(join(folder, "www", name), { force: true });
  return { size, ...Object.fromEntries(Object.entries(figures).map(([key, list]) => [key, list.length ? bench.median(list) : NaN])),
    most: Math.max(...figures.memory) };
}
const middle = await large(200_000_000, "middle.bin", rounds);
const huge = await large(2_000_000_000, "huge.bin", 1);
const after = bench.memory(server.pid);
await bench.stopServer(server);

const of = (list, field) => bench.median(list.map((figure) => figure[field]));
const row = (title, list, beside, what, aim) => `| ${[title, bench.whole(of(list, "per_second")), bench.one(of(list, "p50_ms")), bench.one(of(list, "p99_ms")),
  bench.whole(of(list, "server")), bench.whole(of(list, "postgres")), `${what}: ${bench.whole(beside)}/s`, aim].join(" | ")} |`;
const wide = (title, figure) => `| ${[title, `${bench.whole(figure.up)} MB/s`, `${bench.whole(figure.cp)} MB/s`, bench.percent(figure.up / figure.cp),
  `${bench.whole(figure.md5)} MB/s`, `${bench.whole(figure.both)} MB/s`, bench.percent(figure.up / figure.both),
  `${bench.whole(figure.down)} MB/s`, `${bench.whole(figure.nginx)} MB/s`, bench.percent(figure.down / figure.nginx), `${bench.one(figure.most)} MB`].join(" | ")} |`;
const [files10, asks10, rows10] = [apart, asked, written].map(bench.median);
const limit = 1 / (1 / files10 + 1 / asks10 + 1 / rows10);
bench.publish(`# The storage API under load

\`just bench storage\`: ${head.text}

\`serve --only storage\` on a folder of the same disk, ${connections} connections; ${rounds} rounds of ${seconds} s, medians; every response is
compared. CPU in µs per request. Beside uploads: ${connections} threads that write a file, sync it, rename it and sync its folder; beside
downloads: nginx with \`sendfile\`, which checks no signature and asks no database.

The minimum work of an upload keeps both cores busy: its file in a folder of its own, as Supabase lays files out, with both
folders synced (${bench.whole(files10)} a second), the bucket's limits and whether the key is taken, asked before a byte is written
(pgbench: ${bench.whole(asks10)} a second), and the row with its five indexes (pgbench: ${bench.whole(rows10)} a second). One after the other that is
${bench.whole(limit)} a second: **the most that an upload could reach here, of which the API does ${bench.percent(of(up, "per_second") / limit)}** with HTTP,
the hash and the load generator in it.

| 10 kB | requests/s | p50 ms | p99 ms | CPU server | CPU PostgreSQL | beside it | aim, requests/s |
|---|---|---|---|---|---|---|---|
${row("upload of a new object", up, bench.median(plain), "plain files", "≥ 2,000")}
${row("signed download", down, served.length ? bench.median(served) : NaN, "nginx", "≥ 6,000")}

| one body, by curl | up | \`dd conv=fsync\` | ratio | \`md5sum\` | both at once | ratio | down | nginx | ratio | memory grows by |
|---|---|---|---|---|---|---|---|---|---|---|
${wide("200 MB", middle)}
${wide("2 GB", huge)}

The ETag is the MD5 of the body, which has to be computed on one core from the first byte to the last. So an upload hashes and writes. "Both at once" is \`tee\`, feeding \`md5sum\` and \`dd conv=fsync\`
side by side without a network: how fast these two cores do the same work. Aims: 80 % of \`dd conv=fsync\` (the first ratio), 80 % of nginx, and 16 MB. Resident memory: ${bench.one(idle)} MB idle, ${bench.one(after)} MB after all of this.
`, values.write, head);
process.exit(0);
