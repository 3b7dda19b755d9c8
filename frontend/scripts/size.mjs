/**
 * What two arrivals take: the landing page's JavaScript, and all that comes before the request form's first question can be
 * answered, in each language, as scripts/precompress.mjs compressed them. Fails above a limit. Runs at the end of every build; the pages
 * that load more are printed with `--all`.
 */
import { existsSync, readFileSync, statSync } from "node:fs";

const LIMIT_KB = 130;
const QUESTION_LIMIT_KB = 150;
/** What the server answers besides files: settings, kinds of help, and the heads of a dozen answers. */
const ANSWERS_KB = 4;
const dist = new URL("../dist/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL(".vite/manifest.json", dist), "utf8"));
const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
if (!entry) throw new Error("the manifest holds no entry");

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
/** The bytes of a file as it is sent: those of its compressed form unless it has none because it is small. */
function bytesOf(file, extension) {
  const compressed = new URL(`${file}${extension}`, dist);
  return statSync(existsSync(compressed) ? compressed : new URL(file, dist)).size;
}
const kilobytes = (bytes) => (bytes / 1000).toFixed(1).padStart(7);

const HOME = "src/app/routes/public/home.tsx";
const landing = ["theme.js", ...filesOf(entry, HOME)].reduce((sum, file) => sum + bytesOf(file, ".gz"), 0);
console.log(`${kilobytes(landing)} kB  landing page's JavaScript, gzip (limit ${LIMIT_KB})`);

const ASK = "src/app/routes/public/request-form.tsx";
const styles = [...new Set([entry, ASK].flatMap((key) => manifest[key].css ?? []))];
const shared = ["theme.js", "favicon.svg", ...styles, ...filesOf(entry, ASK)];
const questions = ["en", "es", "fr", "ht"].map((language) => {
  const words = language === "en" ? [] : ["src/messages/translate.ts", `src/messages/po/${language}.po?ask`];
  const more = words.flatMap((key) => filesOf(key)).filter((file) => !shared.includes(file));
  const files = [`pages/request-submission.${language}.html`, ...shared, ...more].map((file) => ({
    file,
    bytes: bytesOf(file, ".br"),
  }));
  return { language, files, bytes: files.reduce((sum, { bytes }) => sum + bytes, ANSWERS_KB * 1000) };
});
for (const { language, bytes } of questions)
  console.log(
    `${kilobytes(bytes)} kB  all that the request form's first question waits for (${language}), Brotli (limit ${QUESTION_LIMIT_KB})`,
  );
const largest = questions.toSorted((a, b) => b.bytes - a.bytes)[0];
for (const { file, bytes } of largest.files) console.log(`${kilobytes(bytes)} kB    ${file}`);

if (process.argv.includes("--all")) {
  const around = Object.keys(manifest).filter((key) => /app\/layouts\/data\.tsx$/.test(key));
  for (const key of Object.keys(manifest).filter((name) => /app\/routes\/.*\.tsx$/.test(name))) {
    const files = filesOf(entry, ...around, key);
    const bytes = files.reduce((sum, file) => sum + bytesOf(file, ".gz"), 0);
    console.log(
      `${kilobytes(bytes)} kB  in ${String(files.length).padStart(2)} files  ${key.replace("src/app/routes/", "")}`,
    );
  }
}
if (landing > LIMIT_KB * 1000 || largest.bytes > QUESTION_LIMIT_KB * 1000) process.exit(1);
