/**
 * The landing page's JavaScript: the entry with all that it imports at once, the home page in it. Fails above the limit.
 * Runs at the end of every build; the pages that load more are printed with `--all`.
 */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_KB = 130;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
if (!entry) throw new Error("the manifest holds no entry");
if (Object.keys(manifest).some((key) => key.endsWith("routes/public/home.tsx")))
  throw new Error("the home page is a file of its own: the landing page waits for it");

function filesOf(...keys) {
  const files = new Set();
  const collect = (key) => {
    const chunk = manifest[key];
    if (!chunk || files.has(chunk.file)) return;
    files.add(chunk.file);
    for (const imported of chunk.imports ?? []) collect(imported);
  };
  for (const key of keys) collect(key);
  return [...files].filter((name) => name.endsWith(".js"));
}
const bytesOf = (file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;
const kilobytes = (bytes) => (bytes / 1000).toFixed(1).padStart(7);

const landing = ["theme.js", ...filesOf(entry)].reduce((sum, file) => sum + bytesOf(file), 0);
console.log(`${kilobytes(landing)} kB  landing page's JavaScript, gzip (limit ${LIMIT_KB})`);

if (process.argv.includes("--all")) {
  const around = Object.keys(manifest).filter((key) => /app\/layouts\/data\.tsx$/.test(key));
  for (const key of Object.keys(manifest).filter((name) => /app\/routes\/.*\.tsx$/.test(name))) {
    const files = filesOf(entry, ...around, key);
    const bytes = files.reduce((sum, file) => sum + bytesOf(file), 0);
    console.log(
      `${kilobytes(bytes)} kB  in ${String(files.length).padStart(2)} files  ${key.replace("src/app/routes/", "")}`,
    );
  }
}
if (landing > LIMIT_KB * 1000) process.exit(1);
