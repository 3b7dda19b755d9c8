/**
 * Writes the pages that people arrive at, in each language, into dist/pages/<path>.<language>.html: `#root` holds their markup
 * until the app takes its place. Beside it, for `public/theme.js`, which files the code of the page and the words of each language
 * are in, so that they are asked for at once. dist/index.html is the same without a page, for all other addresses.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
const { locales } = await import(`${folder}prerender.js`);
/** The pages in a language: a process each, because a page reads its words while it loads. */
const pagesIn = (locale) => {
  const write = `import("${folder}prerender.js").then(({ landings }) => landings("${locale}")).then((all) => process.stdout.write(JSON.stringify(all)))`;
  return JSON.parse(execFileSync(process.execPath, ["--eval", write], { encoding: "utf8", maxBuffer: 2 ** 26 }));
};
const pages = locales.map((locale) => [locale, pagesIn(locale)]);
rmSync(folder, { recursive: true, force: true });

const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
function filesOf(key, files = new Set()) {
  const chunk = manifest[key];
  if (!chunk || files.has(chunk.file)) return files;
  files.add(chunk.file);
  for (const imported of chunk.imports ?? []) filesOf(imported, files);
  return files;
}
const entry = filesOf(Object.keys(manifest).find((key) => manifest[key].isEntry));
const layout = filesOf("src/app/layouts/data.tsx");
const screens = { home: "home", ask: "request-form", login: "login", lookup: "request-status" };
/** At which addresses a page stands; `public/theme.js` knows them as well. */
const addresses = {
  home: ["index"],
  ask: ["request-submission", "submit-request"],
  login: ["login", "nonprofit-login"],
  lookup: ["request-status"],
};
/** Outside of the layout of pages that read the server's data. */
const bare = new Set(["home", "ask"]);
const files = Object.fromEntries(
  Object.entries(screens).map(([name, screen]) => {
    const own = filesOf(`src/app/routes/public/${screen}.tsx`);
    if (own.size === 0) throw new Error(`${screen} has no file of its own`);
    const all = bare.has(name) ? own : new Set([...layout, ...own]);
    return [name, [...all].filter((file) => !entry.has(file)).map((file) => `/${file}`)];
  }),
);
// of who comes back to answers, to a draft or to the single page
const form = [...filesOf("src/features/request-form/components/whole-form.tsx")]
  .filter((file) => !entry.has(file) && !files.ask.includes(`/${file}`))
  .map((file) => `/${file}`);

const words = (locale, ...parts) =>
  [filesOf("src/messages/translate.ts"), ...parts.map((part) => filesOf(`src/messages/po/${locale}.po?${part}`))]
    .flatMap((chunk) => [...chunk])
    .filter((file) => !entry.has(file))
    .map((file) => `/${file}`);
const wordsFor = (...parts) =>
  Object.fromEntries(locales.map((locale) => [locale, locale === "en" ? [] : words(locale, ...parts)]));

const html = readFileSync(new URL("index.html", dist), "utf8");
function put(text, from, to) {
  if (!text.includes(from)) throw new Error(`dist/index.html has no ${from}`);
  return text.replace(from, () => to);
}
/** The app's page around `markup`, which stands there until the app does. */
function around(locale, markup, told) {
  const withLanguage = put(html, '<html lang="en">', `<html lang="${locale}">`);
  const withMarkup = put(withLanguage, '<div id="root"></div>', `<div id="root">${markup}</div>`);
  const data = JSON.stringify(told).replaceAll('"', "&quot;");
  return put(withMarkup, '<script src="/theme.js">', `<script src="/theme.js" data-files="${data}">`);
}
mkdirSync(new URL("pages/", dist), { recursive: true });
for (const [locale, { nowhere, ...markups }] of pages) {
  for (const [name, markup] of Object.entries(markups)) {
    const told = {
      at: name,
      files: files[name],
      // the request form's first question has words of its own, and what comes after it more
      words: wordsFor("ask", ...(name === "ask" ? [] : ["first"])),
      ...(name === "ask" ? { form } : {}),
    };
    const written = around(locale, markup, told);
    for (const address of addresses[name]) writeFileSync(new URL(`pages/${address}.${locale}.html`, dist), written);
  }
  if (locale === "en") {
    const told = { words: wordsFor("ask", "first", "rest") };
    writeFileSync(new URL("index.html", dist), around(locale, nowhere, told));
  }
}
console.log(`in dist/pages stand, in ${locales.join(", ")}: ${Object.keys(screens).join(", ")}`);
