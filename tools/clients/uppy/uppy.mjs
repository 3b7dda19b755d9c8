// Uppy as Supabase's guide sets it up: three files at once in pieces of 6 MiB, one paused and resumed. Run by tools/test-tools.sh.
import { randomBytes } from "node:crypto";
import Uppy from "@uppy/core";
import Tus from "@uppy/tus";

const url = process.env.SUPABASE_URL;
const key = process.env.SUPABASE_SERVICE_ROLE_KEY
  ?? "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
const headers = { authorization: `Bearer ${key}`, apikey: key };
const bucket = `uppy-${randomBytes(4).toString("hex")}`;
const made = await fetch(`${url}/storage/v1/bucket`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify({ name: bucket }) });
if (!made.ok) throw new Error(await made.text());

const files = new Map([["small.txt", 10], ["a b/middle.bin", 7_000_000], ["large.bin", 20_000_000]].map(([name, length]) => [name, randomBytes(length)]));
const uppy = new Uppy({ autoProceed: false }).use(Tus, {
  endpoint: `${url}/storage/v1/upload/resumable`,
  headers: { ...headers, "x-upsert": "false" },
  uploadDataDuringCreation: true,
  removeFingerprintOnSuccess: true,
  chunkSize: 6 * 1024 * 1024,
  allowedMetaFields: ["bucketName", "objectName", "contentType", "cacheControl", "metadata"],
});
uppy.on("file-added", (file) => uppy.setFileMeta(file.id, { bucketName: bucket, objectName: file.name, contentType: file.type, cacheControl: "3600" }));
// With Node.js, tus-js-client accepts buffers, but Uppy requires their size.
for (const [name, bytes] of files) uppy.addFile({ name, type: "application/octet-stream", data: Object.assign(bytes, { size: bytes.length }) });
let paused = false;
uppy.on("upload-progress", (file, progress) => {
  if (paused || file.name !== "large.bin" || progress.bytesUploaded === 0) return;
  paused = true;
  uppy.pauseResume(file.id);
  setTimeout(() => uppy.pauseResume(file.id), 300);
});
const result = await uppy.upload();
if (result.failed.length > 0) throw result.failed[0].error;
if (!paused) throw new Error("nothing was paused");
for (const [name, bytes] of files) {
  const answer = await fetch(`${url}/storage/v1/object/${bucket}/${encodeURI(name)}`, { headers });
  if (!answer.ok || !Buffer.from(await answer.arrayBuffer()).equals(bytes)) throw new Error(`${name} is not what was sent`);
}
console.log("uppy", Uppy.VERSION, "ok");
process.exit(0);
