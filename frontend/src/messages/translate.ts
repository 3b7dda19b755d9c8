/**
 * Translations by Lingui. Loaded on demand, in two parts (`parts.ts`); untranslated texts stay English.
 */
import { setupI18n, type Messages } from "@lingui/core";
import { setTranslator } from "./catalogue";
import type { Locale } from "./locale";

type Foreign = Exclude<Locale, "en">;
type Part = () => Promise<{ messages: Messages }>;

const first: Record<Foreign, Part> = {
  es: () => import("./po/es.po?first"),
  fr: () => import("./po/fr.po?first"),
  ht: () => import("./po/ht.po?first"),
};
const rest: Record<Foreign, Part> = {
  es: () => import("./po/es.po?rest"),
  fr: () => import("./po/fr.po?rest"),
  ht: () => import("./po/ht.po?rest"),
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
  "juill.": "jiy.",
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

/** For Haitian Creole: what `Intl` writes in French, in Creole. */
export const daysOf = (locale: Locale): ((date: string) => string) | null =>
  locale === "ht" ? (date) => date.replace(/\p{L}+\.?/gu, (word) => creoleDays[word] ?? word) : null;

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

/** Activates a language with the first part of its texts. */
export async function translate(locale: Locale): Promise<void> {
  words = {};
  if (locale === "en") return setTranslator(null);
  speak(locale, (await first[locale]()).messages);
}

/** Adds the texts of all other pages. */
export async function translateRest(locale: Foreign): Promise<void> {
  speak(locale, (await rest[locale]()).messages);
}
