/**
 * Lingui reads our English words and keeps a catalogue per language in `src/messages/po`:
 * `npm run messages` extracts, `src/messages/po.test.ts` checks what is translated.
 */
import { poFormat } from "./src/messages/po-format";

type Message = string | { one: string; other: string };

/** A message of `messages/en` as ICU MessageFormat. */
const icu = (message: Message) =>
  typeof message === "string" ? message : `{count, plural, one {${message.one}} other {${message.other}}}`;

/** The words of a feature: `define("feature", { key: message })` in `src/messages/en/<feature>.ts`. */
const features = {
  match: (filename: string) => /messages[\\/]en[\\/]\w+\.ts$/.test(filename),
  extract(filename: string, code: string, onMessageExtracted: (message: object) => void) {
    // such a file is one call of `define` and nothing else
    const call = /^export const \w+ = (define\([\s\S]*\));\s*$/m.exec(code)?.[1];
    if (!call) throw new Error(`${filename} is no list of words`);
    const define = (feature: string, messages: Record<string, Message>) => {
      for (const [key, message] of Object.entries(messages)) {
        onMessageExtracted({ id: `${feature}.${key}`, message: icu(message), origin: [filename, 1] });
      }
    };
    new Function("define", call)(define);
  },
};

export default {
  sourceLocale: "en",
  locales: ["en", "es", "fr", "ht"],
  catalogs: [
    {
      path: "<rootDir>/src/messages/po/{locale}",
      include: ["<rootDir>/src/messages/en"],
      exclude: ["**/content/**"],
    },
  ],
  extractors: [features],
  format: poFormat,
  orderBy: "messageId",
};
