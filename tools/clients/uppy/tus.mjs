// tus-js-client as Supabase's guide sets it up: pieces of 6 MiB, an upload resumed by another run, an aborted one, one
// of unknown length and one with a signed token. Run by tools/test-tools.sh.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import * as tus from "tus-js-client";

const url = process.env.SUPABASE_URL;
const key = process.env.SUPABASE_SERVICE_ROLE_KEY
  ?? "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
const headers = { authorization: `Bearer ${key}`, apikey: key };
const bucket = `tus-${randomBytes(4).toString("hex")}`;
const folder = mkdtempSync(join(tmpdir(), "ferrobase-tus-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

async function call(method, path, body) {
  const answer = await fetch(`${url}/storage/v1/${path}`, { method, headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
  return answer.json();
}
await call("POST", "bucket", { name: bucket });

const options = (name, further) => ({
  endpoint: `${url}/storage/v1/upload/resumable`,
  retryDelays: [0, 500, 1000],
  headers: { ...headers, "x-upsert": "false" },
  uploadDataDuringCreation: true,
  removeFingerprintOnSuccess: true,
  urlStorage: new tus.FileUrlStorage(join(folder, "urls")),
  fingerprint: async () => `fingerprint of ${name}`,
  metadata: { bucketName: bucket, objectName: name, contentType: "application/octet-stream", cacheControl: "3600" },
  chunkSize: 6 * 1024 * 1024,
  ...further,
});

/** Uploads everything, or until `enough` returns true for the number of bytes sent. */
const upload = (source, name, { enough = () => false, ...further } = {}) => new Promise((done, fail) => {
  const running = new tus.Upload(source, options(name, {
    onError: fail,
    onSuccess: () => done(running),
    onChunkComplete: (_, sent) => { if (enough(sent)) void running.abort().then(() => done(running)); },
    ...further,
  }));
  running.findPreviousUploads().then((found) => {
    if (found.length > 0) running.resumeFromPreviousUpload(found[0]);
    running.start();
  }, fail);
});

async function expect(name, bytes) {
  const answer = await fetch(`${url}/storage/v1/object/${bucket}/${encodeURI(name)}`, { headers });
  if (!answer.ok || !Buffer.from(await answer.arrayBuffer()).equals(bytes)) throw new Error(`${name} is not what was sent`);
}

const large = randomBytes(20_000_000);
const first = await upload(large, "a b/large.bin", { enough: (sent) => sent >= 6 * 1024 * 1024 });
let began = -1;
const second = await upload(large, "a b/large.bin", { onProgress: (sent) => { if (began < 0) began = sent; } });
if (second.url !== first.url || began < 6 * 1024 * 1024) throw new Error(`it began anew, at ${began}`);
await expect("a b/large.bin", large);

const given = await upload(large, "given up", { enough: () => true });
await tus.Upload.terminate(given.url, options("given up"));
if ((await fetch(given.url, { method: "HEAD", headers: { ...headers, "tus-resumable": "1.0.0" } })).status !== 404) throw new Error("it is still there");

const pieces = Array.from({ length: 70 }, () => randomBytes(100_000));
await upload(Readable.from(pieces), "deferred", { uploadLengthDeferred: true, uploadSize: null, chunkSize: 3_000_000 });
await expect("deferred", Buffer.concat(pieces));

const { token } = await call("POST", `object/upload/sign/${bucket}/signed`, {});
const small = randomBytes(1000);
await upload(small, "signed", { endpoint: `${url}/storage/v1/upload/resumable/sign`, headers: { "x-signature": token } });
await expect("signed", small);
const refused = await upload(small, "signed", { retryDelays: null }).then(() => null, (error) => error);
if (refused?.originalResponse?.getStatus() !== 409) throw new Error(`a duplicate was expected: ${refused}`);

const listed = (await call("POST", `object/list-v2/${bucket}`, {})).objects.map((object) => object.name);
if (listed.join() !== "a b/large.bin,deferred,signed") throw new Error(`there is ${listed}`);
console.log("tus-js-client ok");
process.exit(0);
