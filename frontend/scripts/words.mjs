// Writes sql/app/words/functions.sql: the words of mails and notifications, from the catalogues. Runs at the end of `npm run messages`.
import { readFileSync, writeFileSync } from "node:fs";
import { formatter } from "@lingui/format-po";

const catalogues = new URL("../src/messages/po/", import.meta.url);
const target = new URL("../../sql/app/words/functions.sql", import.meta.url);
const languages = ["es", "fr", "ht", "en"];
const po = formatter({ lineNumbers: false, printLinguiId: false, explicitIdAsDefault: true });

/** `{count, plural, one {…} other {…}}` as an object of its forms; every other message as it is. */
export function formsOf(message) {
  if (!message.startsWith("{count, plural,")) return message;
  const forms = {};
  for (const [start] of message.matchAll(/\b(?:one|other) \{/g)) {
    const from = message.indexOf(start) + start.length;
    let depth = 1;
    let at = from;
    while (depth > 0) depth += { "{": 1, "}": -1 }[message[at++]] ?? 0;
    forms[start.split(" ")[0]] = message.slice(from, at - 1);
  }
  return forms;
}

/** Notifications are stored in English and rendered by the app; names of things appear in mails. */
const wanted = (language, key) =>
  key.startsWith("mail.") || (language === "en" ? key.startsWith("notification.") : key.startsWith("names."));

export async function wordsSql() {
  const cases = [];
  for (const language of languages) {
    const filename = new URL(`${language}.po`, catalogues).pathname;
    const text = readFileSync(filename, "utf8");
    const catalogue = await po.parse(text, { locale: language, sourceLocale: "en", filename });
    const words = Object.fromEntries(
      Object.entries(catalogue)
        .filter(([key, { translation }]) => wanted(language, key) && translation)
        .map(([key, { translation }]) => [key, formsOf(translation)]),
    );
    const literal = `'${JSON.stringify(words, null, 1).replaceAll("'", "''")}'::jsonb`;
    cases.push(language === "en" ? `  else ${literal}` : `  when '${language}' then ${literal}`);
  }
  return `-- Written by \`npm run messages\` in frontend, from src/messages/po: edit the words there.

-- The words of mails in a language, and of notifications in English. Without SET, so that the planner reads each list once.
create or replace function private.words(p_language text) returns jsonb
language sql immutable parallel safe as $words$
  select case p_language
${cases.join("\n")}
  end
$words$;
`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) writeFileSync(target, await wordsSql());
