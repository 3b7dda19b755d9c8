/** Writes the landing page's markup into dist/index.html: `#root` holds it until the app takes its place. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const folder = fileURLToPath(new URL("../node_modules/.prerender/", import.meta.url));
await build({
  root: fileURLToPath(new URL("..", import.meta.url)),
  logLevel: "warn",
  build: {
    ssr: "src/prerender.tsx",
    outDir: folder,
    emptyOutDir: true,
    copyPublicDir: false,
    manifest: false,
    rolldownOptions: { output: { codeSplitting: true } },
  },
});
const { landing } = await import(`${folder}prerender.js`);
rmSync(folder, { recursive: true, force: true });

const page = new URL("../dist/index.html", import.meta.url);
const empty = '<div id="root"></div>';
const html = readFileSync(page, "utf8");
if (!html.includes(empty)) throw new Error("dist/index.html has no empty #root");
writeFileSync(
  page,
  html.replace(empty, () => `<div id="root"><div class="before-app">${landing()}</div></div>`),
);
console.log("the landing page stands in dist/index.html");
