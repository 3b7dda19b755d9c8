/** The landing page's JavaScript: entry, home, and all they import at once. Fails above the limit. Run after `build`. */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_KB = 130;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const home = Object.keys(manifest).find((key) => key.endsWith("routes/public/home.tsx"));
if (!entry || !home) throw new Error("the manifest holds no entry or no home page");

const chunks = new Set();
const collect = (key) => {
  const chunk = manifest[key];
  if (!chunk || chunks.has(chunk.file)) return;
  chunks.add(chunk.file);
  for (const imported of chunk.imports ?? []) collect(imported);
};
collect(entry);
collect(home);

let total = gzipSync(readFileSync(new URL("theme.js", dist)), { level: 9 }).length;
for (const file of [...chunks].filter((name) => name.endsWith(".js"))) {
  const bytes = gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;
  total += bytes;
  console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${file}`);
}
console.log(`${(total / 1000).toFixed(1).padStart(7)} kB  gzip in total (limit ${LIMIT_KB})`);
if (total > LIMIT_KB * 1000) process.exit(1);
