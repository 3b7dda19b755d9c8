// Uploads and downloads 2 GB in every way that storage supports, and measures the server's memory. Run by
// `just storage-memory`, which starts a server for it, and by `just storage-memory-s3`, with an S3 store for the files:
//   node tools/storage-memory.mjs [--size 2000000000] [--write docs/reports/storage-memory.md]
// Bodies consist of distinct pieces; downloads are compared by hash.
import { createHash } from "node:crypto";
import { execFileSync, spawn } from "node:child_process";
import { createReadStream, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { size: { type: "string", default: "2000000000" }, write: { type: "string" } } });
const size = Number(values.size);
const { SUPABASE_URL: url, SERVER_PID: pid } = process.env;
const key = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
const headers = { authorization: `Bearer ${key}`, apikey: key };
const asUser = ["-H", `authorization: Bearer ${key}`, "-H", `apikey: ${key}`];
const signed = ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--aws-sigv4", "aws:amz:local:s3", "--user",
  "625729a08b95bf1b7ff351a663f3a23c:850181e4652dd023b7a98c58ae0d2d34bd487ee0cc3254aed6eda37307425907"];

const folder = mkdtempSync(join(tmpdir(), "ferrobase-memory-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const source = join(folder, "source");
const written = createHash("sha256");
const file = openSync(source, "w");
for (let at = 0; at < size; at += 1 << 20) {
  const piece = Buffer.alloc(Math.min(1 << 20, size - at), createHash("sha256").update(String(at)).digest());
  written.update(piece);
  writeSync(file, piece);
}
const hash = written.digest("hex");

/** In MB: now (`VmRSS`), or the most since the peak was reset (`VmHWM`). */
const memory = (field) => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(new RegExp(`${field}:\\s+(\\d+)`))[1]) / 1024;

const rows = [];
async function measure(road, work) {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  const [before, begin] = [memory("VmRSS"), performance.now()];
  await work();
  const seconds = (performance.now() - begin) / 1000;
  rows.push({ road, grown: memory("VmHWM") - before, seconds });
  console.log(`${road}: ${rows.at(-1).grown.toFixed(1)} MB more, ${seconds.toFixed(0)} s`);
}

const curl = (...args) => execFileSync("curl", ["-sS", "--fail-with-body", "-o", join(folder, "answer"), ...args], { stdio: ["ignore", "ignore", "inherit"] });

/** Reads curl's output and compares its hash. */
const download = (...args) => new Promise((done, fail) => {
  const running = spawn("curl", ["-sS", "--fail", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const read = createHash("sha256");
  running.stdout.on("data", (piece) => read.update(piece));
  running.on("error", fail);
  running.on("close", (code) => {
    if (code !== 0) fail(new Error(`curl ended with ${code}`));
    else if (read.digest("hex") !== hash) fail(new Error("what came back is not what was sent"));
    else done();
  });
});

async function call(path, body) {
  const answer = await fetch(`${url}/storage/v1${path}`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

async function resumable(name, piece) {
  const tus = { ...headers, "tus-resumable": "1.0.0" };
  const pair = (field, value) => `${field} ${Buffer.from(value).toString("base64")}`;
  const made = await fetch(`${url}/storage/v1/upload/resumable`, { method: "POST", headers: { ...tus, "upload-length": String(size),
    "upload-metadata": [pair("bucketName", "memory"), pair("objectName", name)].join(",") } });
  if (made.status !== 201) throw new Error(await made.text());
  const input = openSync(source, "r");
  for (let at = 0; at < size; at += piece) {
    const body = Buffer.alloc(Math.min(piece, size - at));
    readSync(input, body, 0, body.length, at);
    const sent = await fetch(made.headers.get("location"), { method: "PATCH", body,
      headers: { ...tus, "upload-offset": String(at), "content-type": "application/offset+octet-stream" } });
    if (sent.status !== 204) throw new Error(await sent.text());
  }
}

await call("/bucket", { name: "memory", public: true });
const idle = memory("VmRSS");
const object = (name) => `${url}/storage/v1/object/memory/${name}`;
await measure("up: one body", () => curl("-X", "POST", ...asUser, "-H", "content-type: application/octet-stream", "-T", source, object("raw")));
await measure("down: public", () => download(`${url}/storage/v1/object/public/memory/raw`));
const { signedURL } = await call("/object/sign/memory/raw", { expiresIn: 3600 });
await measure("down: by a signed link", () => download(`${url}/storage/v1${signedURL}`));
await measure("down: in eight ranges, together", async () => {
  const each = Math.ceil(size / 8);
  await Promise.all(Array.from({ length: 8 }, (_, n) => new Promise((done, fail) => {
    const part = [n * each, Math.min(size, (n + 1) * each) - 1];
    const running = spawn("curl", ["-sS", "--fail", "-r", part.join("-"), `${url}/storage/v1/object/public/memory/raw`], { stdio: ["ignore", "pipe", "inherit"] });
    const [read, wanted] = [createHash("sha256"), createHash("sha256")];
    running.stdout.on("data", (piece) => read.update(piece));
    running.on("close", () => createReadStream(source, { start: part[0], end: part[1] }).on("data", (piece) => wanted.update(piece))
      .on("end", () => (read.digest("hex") === wanted.digest("hex") ? done() : fail(new Error("a range is not what was sent")))));
  })));
});
await measure("up: a form", () => curl(...asUser, "-F", "cacheControl=60", "-F", `file=@${source}`, object("form")));
await measure("copy", () => call("/object/copy", { bucketId: "memory", sourceKey: "form", destinationKey: "copy" }));
await call("/bucket/memory/empty", {});
await measure("up: resumable, in pieces of 6 MiB", () => resumable("pieces", 6 << 20));
await measure("down: by its owner", () => download(...asUser, object("pieces")));
await call("/bucket/memory/empty", {});
const s3 = `${url}/storage/v1/s3/memory/s3`;
await measure("up: S3", () => curl(...signed, "-T", source, s3));
await measure("down: S3", () => download(...signed, s3));
await call("/bucket/memory/empty", {});

const cpu = readFileSync("/proc/cpuinfo", "utf8");
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"]).toString().trim();
const program = process.env.FERROBASE_BIN ?? "target/debug/ferrobase";
const isStore = process.env.STORAGE_BACKEND === "s3";
const text = `# ${(size / 1e9).toFixed(0)} GB up and down${isStore ? ", the files in an S3 store" : ""}

\`just storage-memory${isStore ? "-s3" : ""}\`: ${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${program.match(/release|quick|debug/)?.[0] ?? "named"} build; ${[...cpu.matchAll(/^processor/gm)].length} × ${cpu.match(/model name\s*:\s*(.*)/)?.[1] ?? "unknown"}.

Each body has ${size.toLocaleString("en")} bytes; downloads are compared by hash. The server, with all its APIs, uses ${idle.toFixed(1)} MB
before the first transfer and ${memory("VmRSS").toFixed(1)} MB after the last. The machine may have had other work meanwhile.

| transfer | maximum growth of resident memory | seconds |
|---|---|---|
${rows.map((row) => `| ${row.road} | ${row.grown.toFixed(1)} MB | ${row.seconds.toFixed(0)} |`).join("\n")}
`;
console.log(text);
if (values.write) writeFileSync(values.write, text);
const most = Math.max(...rows.map((row) => row.grown));
if (most > 64) throw new Error(`memory grew by ${most.toFixed(1)} MB: a body is held somewhere`);
