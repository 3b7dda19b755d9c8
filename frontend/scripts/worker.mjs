/**
 * Builds the service worker, dist/sw.js, after all other files, because it contains the list of files to cache. Further
 * files are cached as pages use them (src/lib/offline-shell.ts).
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, loadConfigFromFile } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));

/** The request form, for guests and signed-in users, with all its files. */
const shell = [
  "index.html",
  "src/app/routes/public/request-form.tsx",
  "src/features/request-form/components/whole-form.tsx",
  "src/features/request-form/components/account-match.tsx",
  "src/features/session/answers.ts",
  "src/features/session/person.ts",
  "src/components/ui/toaster.tsx",
  "src/app/layouts/data.tsx",
  "src/app/layouts/menus.tsx",
  "node_modules/@supabase/supabase-js/dist/index.mjs",
];
const files = new Set();
function collect(key) {
  const chunk = manifest[key];
  if (!chunk) throw new Error(`the build has no ${key}: see scripts/worker.mjs`);
  if (files.has(`/${chunk.file}`)) return;
  for (const name of [chunk.file, ...(chunk.css ?? [])]) files.add(`/${name}`);
  for (const imported of chunk.imports ?? []) collect(imported);
}
for (const key of shell) collect(key);

const page = readFileSync(new URL("index.html", dist), "utf8");
const list = [...files].sort();
const version = createHash("sha256")
  .update(JSON.stringify([list, page, readFileSync(new URL("theme.js", dist), "utf8")]))
  .digest("hex")
  .slice(0, 16);
const { target } = (await loadConfigFromFile({ command: "build", mode: "production" }, undefined, root)).config.build;
await build({
  root,
  configFile: false,
  logLevel: "warn",
  resolve: { alias: { "@": fileURLToPath(new URL("../src", import.meta.url)) } },
  define: { BUILD_OF_WORKER: JSON.stringify({ version, entry: `/${manifest["index.html"].file}`, files: list }) },
  build: {
    target,
    outDir: "dist",
    emptyOutDir: false,
    copyPublicDir: false,
    modulePreload: false,
    rolldownOptions: {
      input: "src/worker/main.ts",
      output: { format: "iife", entryFileNames: "sw.js" },
    },
  },
});
console.log(`the service worker keeps ${list.length} files from the start`);
