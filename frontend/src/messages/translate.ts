/**
 * Words in another language than English, by Lingui. Loaded only when one is wanted, in three parts (`parts.ts`); what is not
 * translated stays English.
 */
import { setupI18n, type Messages } from "@lingui/core";
import { setTranslator } from "./catalogue";
import type { Locale } from "./locale";
import type { Part } from "./parts";

type Foreign = Exclude<Locale, "en">;
type Load = () => Promise<{ messages: Messages }>;

const parts: Record<Part, Record<Foreign, Load>> = {
  ask: {
    es: () => import("./po/es.po?ask"),
    fr: () => import("./po/fr.po?ask"),
    ht: () => import("./po/ht.po?ask"),
  },
  first: {
    es: () => import("./po/es.po?first"),
    fr: () => import("./po/fr.po?first"),
    ht: () => import("./po/ht.po?first"),
  },
  rest: {
    es: () => import("./po/es.po?rest"),
    fr: () => import("./po/fr.po?rest"),
    ht: () => import("./po/ht.po?rest"),
  },
};

/** Not every engine has plural rules for Haitian Creole, whose nouns do not change with the number. */
const rulesOf = (locale: Locale) => (locale === "ht" ? "fr" : locale);

const creoleDays: Readonly<Record<string, string>> = {
  janvier: "janvye",
  février: "fevriye",
  mars: "mas",
  mai: "me",
  juin: "jen",
  juillet: "jiyè",
  août: "out",
  septembre: "septanm",
  octobre: "oktòb",
  novembre: "novanm",
  décembre: "desanm",
  "févr.": "fev.",
  // of Haiti in some engines' data, of France in others'
  "juill.": "jiy.",
  "juil.": "jiy.",
  "oct.": "okt.",
  "déc.": "des.",
  lundi: "lendi",
  mardi: "madi",
  mercredi: "mèkredi",
  jeudi: "jedi",
  vendredi: "vandredi",
  samedi: "samdi",
  dimanche: "dimanch",
};

/** For Haitian Creole: what `Intl` writes in French, in Creole. For French: the first of a month, which `Intl` writes as '1'. */
export const daysOf = (locale: Locale): ((date: string) => string) | null =>
  locale === "ht"
    ? (date) => date.replace(/\p{L}+\.?/gu, (word) => creoleDays[word] ?? word)
    : locale === "fr"
      ? (date) => date.replace(/\b1 (?=\p{L})/u, "1er ")
      : null;

let words: Messages = {};

function speak(locale: Foreign, more: Messages): void {
  words = { ...words, ...more };
  const known = words;
  const i18n = setupI18n({ locale: rulesOf(locale), messages: { [rulesOf(locale)]: known } });
  setTranslator((key, params) => {
    if (!known[key]) return undefined;
    // a placeholder without a value stays, as in English: `components/words.tsx` inserts elements there
    const values = new Proxy(params ?? {}, {
      get: (given, name) => (typeof name === "string" && name in given ? given[name] : `{${String(name)}}`),
    });
    return i18n._(key, values as Record<string, unknown>);
  });
}

/** Speaks a language from here on, with the words of the request form's first question. */
export async function translate(locale: Locale): Promise<void> {
  words = {};
  if (locale === "en") return setTranslator(null);
  await translateMore(locale, "ask");
}

/** Adds the words of another part. */
export async function translateMore(locale: Foreign, part: Part): Promise<void> {
  speak(locale, (await parts[part][locale]()).messages);
}
