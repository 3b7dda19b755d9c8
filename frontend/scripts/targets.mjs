/**
 * Searches the built styles and code for features that Chrome 100 and Safari 15.4 lack. The build target converts
 * syntax; this searches for APIs by name. Runs at the end of every build.
 */
import { readdirSync, readFileSync } from "node:fs";

const dist = new URL("../dist/", import.meta.url);
const names = readdirSync(dist, { recursive: true }).filter((name) => /^(?:assets\/.*\.(?:css|js)|sw\.js)$/.test(name));

/** Newer than one of the two; after the colon, where it came. */
const styles = {
  "nested rules": /[;{}]\s*&/,
  "media ranges (Chrome 104, Safari 16.4)":
    /@media[^{]*[(\s](?:width|height)\s*[<>]=?|@media[^{]*[<>]=?\s*(?:width|height)/,
  "container queries (Chrome 105, Safari 16)": /@container/,
  "individual transforms (Chrome 104)": /[;{](?:translate|scale|rotate):/,
  "dynamic viewport units (Chrome 108)": /\d[dsl]v[hw]\b/,
  "@starting-style (Chrome 117, Safari 17.5)": /@starting-style/,
  "@scope (Chrome 118, Safari 17.4)": /@scope/,
  "light-dark() (Chrome 123, Safari 17.5)": /light-dark\(/,
  "subgrid (Chrome 117, Safari 16)": /subgrid/,
  ":user-invalid (Chrome 119, Safari 16.5)": /:user-(?:in)?valid/,
};
const code = {
  "lookbehind (Safari 16.4)": /\(\?<[=!]/,
  "static blocks (Safari 16.4)": /\bstatic\s*\{/,
  "array copies (Chrome 110, Safari 16)": /\]\.to(?:Sorted|Reversed|Spliced)\(/,
  "groupBy (Chrome 117, Safari 17.4)": /\b(?:Object|Map)\.groupBy\(/,
  "AbortSignal.timeout (Chrome 103, Safari 16)": /AbortSignal\.timeout\(/,
  "AbortSignal.any (Chrome 116, Safari 17.4)": /AbortSignal\.any\(/,
  "requestIdleCallback (no Safari)": /\brequestIdleCallback\(/,
  "isWellFormed (Chrome 111, Safari 16.4)": /\.isWellFormed\(/,
  "Array.fromAsync (Chrome 121, Safari 16.4)": /Array\.fromAsync\(/,
  "CompressionStream (Safari 16.4)": /\bnew CompressionStream\(/,
  "OffscreenCanvas (Safari 16.4)": /\bnew OffscreenCanvas\(/,
};

/** Rules inside `@supports` are only for browsers that have the feature. */
function outsideOfSupports(css) {
  let rest = "";
  let at = 0;
  for (let start = css.indexOf("@supports"); start >= 0; start = css.indexOf("@supports", at)) {
    rest += css.slice(at, start);
    at = css.indexOf("{", start) + 1;
    for (let depth = 1; depth > 0; at += 1) depth += { "{": 1, "}": -1 }[css[at]] ?? 0;
  }
  return rest + css.slice(at);
}

const found = names.flatMap((name) => {
  const text = readFileSync(new URL(name, dist), "utf8");
  const [list, searched] = name.endsWith(".css") ? [styles, outsideOfSupports(text)] : [code, text];
  return Object.entries(list).flatMap(([what, pattern]) => {
    const hit = pattern.exec(searched);
    return hit ? [`${name}: ${what}: …${searched.slice(Math.max(0, hit.index - 40), hit.index + 40)}…`] : [];
  });
});
for (const line of found) console.error(line);
if (found.length > 0) process.exit(1);
console.log(`${names.length} files hold nothing that Chrome 100 or Safari 15.4 do not know`);
