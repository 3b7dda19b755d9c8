/** The language of this visit: asked for in the address (`?lang=es`), chosen here before, or the browser's. */
import { readStored, removeStored, store } from "@/lib/stored";
import type { Part } from "./parts";

export const locales = ["en", "es", "fr", "ht"] as const;
export type Locale = (typeof locales)[number];

/** How each language calls itself. */
export const localeNames: Record<Locale, string> = {
  en: "English",
  es: "Español",
  fr: "Français",
  ht: "Kreyòl ayisyen",
};

/** For `Intl`: no engine knows Haitian Creole; Haiti formats dates and money as in French. */
const intlNames: Record<Locale, string> = { en: "en-US", es: "es-US", fr: "fr", ht: "fr-HT" };

const KEPT = "aidbridge-language";
/** Set until a choice made here is stored in the person's profile. */
const NEWS = "aidbridge-language-new";

/**
 * A pseudo-language for tests (`?lang=ar-XB`): every text of the catalogue is reversed and read from the right, so that
 * texts outside of the catalogue and layouts with fixed left and right stand out.
 */
const PSEUDO = "ar-XB";

/** 'es-MX' → 'es'; null for unsupported languages. */
export function knownLocale(tag: string | null | undefined): Locale | null {
  const language = tag?.toLowerCase().split(/[-_]/)[0];
  return locales.find((locale) => locale === language) ?? null;
}

export interface Wishes {
  /** The address' query. */
  search: string;
  kept: string | null;
  /** The browser's languages, most preferred first. */
  browser: readonly string[];
}

/** The first supported language. */
export function chooseLocale({ search, kept, browser }: Wishes): Locale {
  const wishes = [new URLSearchParams(search).get("lang"), kept, ...browser];
  for (const wish of wishes) {
    const known = knownLocale(wish);
    if (known) return known;
  }
  return "en";
}

let current: Locale = "en";

export const currentLocale = (): Locale => current;
/** The tag for dates, numbers and lists. */
export const intlLocale = (): string => intlNames[current];

let ownDays: ((date: string) => string) | null = null;

/** Translates a date formatted by `Intl` into a language that it does not know. */
export const dayWords = (date: string): string => (ownDays ? ownDays(date) : date);

const YEAR_S = 31_536_000;
/** Keeps a language in this browser; the cookie lets the server answer the next visit's first page in it. */
function keep(locale: Locale): boolean {
  document.cookie = `${KEPT}=${locale}; path=/; max-age=${YEAR_S}; samesite=lax`;
  return store("browser", KEPT, locale);
}

/** Keeps a choice in this browser, and for the profile of whoever is signed in here. Where storage is closed the address says it. */
export function keepLocale(locale: Locale): void {
  keep(locale);
  store("browser", NEWS, "1");
}

/**
 * Synchronises the browser's and the person's language: a choice made here goes to the profile, otherwise the profile's
 * is used here. `save` writes the profile.
 */
export async function settleWithPerson(kept: string | null, save: (locale: Locale) => Promise<void>): Promise<void> {
  const theirs = knownLocale(kept);
  const news = readStored("browser", NEWS) !== null;
  if (!news && theirs && theirs !== current) {
    // only where it can be kept: the page would load for ever
    if (keep(theirs) && readStored("browser", KEPT) === theirs) window.location.reload();
    return;
  }
  if (current !== theirs && (news || current !== "en")) await save(current);
  removeStored("browser", NEWS);
}

const coming: Partial<Record<Part, Promise<void>>> = {};

/** A part that does not come is asked for again by the next page; until then it is English. */
function words(part: Part): Promise<void> {
  const locale = current;
  if (locale === "en") return Promise.resolve();
  return (coming[part] ??= import("./translate")
    .then(({ translateMore }) => translateMore(locale, part))
    .catch(() => void delete coming[part]));
}

/**
 * Resolves when the words of the part `first` are here in the language of the visit: its pages wait for it, because many words are
 * read while modules load.
 */
export const firstWords = (): Promise<void> => words("first");

/** The same of every page's words. */
export const allWords = (): Promise<void> => Promise.all([words("first"), words("rest")]).then(() => undefined);

/** Speaks a language from here on, with the words that come first. */
export async function speakLocale(locale: Locale): Promise<void> {
  if (locale === "en") return;
  const { translate, daysOf } = await import("./translate");
  await translate(locale);
  current = locale;
  ownDays = daysOf(locale);
}

/** Determines the language before anything is shown; other languages than English load their catalogue. */
export async function startLocale(): Promise<void> {
  const { search } = window.location;
  if (new URLSearchParams(search).get("lang") === PSEUDO) {
    const { translatePseudo } = await import("./pseudo");
    translatePseudo();
    document.documentElement.dir = "rtl";
    return;
  }
  const locale = chooseLocale({ search, kept: readStored("browser", KEPT), browser: navigator.languages ?? [] });
  if (knownLocale(new URLSearchParams(search).get("lang")) && readStored("browser", KEPT) !== locale)
    keepLocale(locale);
  try {
    await speakLocale(locale);
    document.documentElement.lang = locale;
  } catch {
    // the catalogue did not come: English is at hand
    document.documentElement.lang = "en";
  }
}
