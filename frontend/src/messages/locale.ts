/** The language of this visit: asked for in the address (`?lang=es`), chosen here before, or the browser's. */
import { readStored, removeStored, store } from "@/lib/stored";

export const locales = ["en", "es", "fr", "ht"] as const;
export type Locale = (typeof locales)[number];

/** How each language calls itself. */
export const localeNames: Record<Locale, string> = {
  en: "English",
  es: "Español",
  fr: "Français",
  ht: "Kreyòl ayisyen",
};

/** For `Intl`: no engine knows Haitian Creole, and Haiti writes dates and money as in French. */
const intlNames: Record<Locale, string> = { en: "en-US", es: "es-US", fr: "fr", ht: "fr-HT" };

const KEPT = "aidbridge-language";
/** Set while a choice made here has not reached the person's profile. */
const NEWS = "aidbridge-language-new";

/**
 * No language, but a test of the pages (`?lang=ar-XB`): every word of the catalogue turned round and read from the right, so that a
 * text that is not in the catalogue, or a page that knows only left and right, is seen.
 */
const PSEUDO = "ar-XB";

/** 'es-MX' → 'es'; null for a language that we do not have. */
export function knownLocale(tag: string | null | undefined): Locale | null {
  const language = tag?.toLowerCase().split(/[-_]/)[0];
  return locales.find((locale) => locale === language) ?? null;
}

export interface Wishes {
  /** The address' query. */
  search: string;
  kept: string | null;
  /** The browser's languages, the dearest first. */
  browser: readonly string[];
}

/** The first wish that we can grant. */
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

/** A date that `Intl` wrote, in the words of a language that it does not know. */
export const dayWords = (date: string): string => (ownDays ? ownDays(date) : date);

/** Keeps a choice in this browser, and for the profile of whoever is signed in here. Where storage is closed the address says it. */
export function keepLocale(locale: Locale): void {
  store("browser", KEPT, locale);
  store("browser", NEWS, "1");
}

/**
 * Brings the language of this browser and that of the person together: a choice made here goes to the profile, else the profile's is
 * read here. `save` writes the profile.
 */
export async function settleWithPerson(kept: string | null, save: (locale: Locale) => Promise<void>): Promise<void> {
  const theirs = knownLocale(kept);
  const news = readStored("browser", NEWS) !== null;
  if (!news && theirs && theirs !== current) {
    // only where it can be kept: the page would load for ever
    if (store("browser", KEPT, theirs) && readStored("browser", KEPT) === theirs) window.location.reload();
    return;
  }
  if (current !== theirs && (news || current !== "en")) await save(current);
  removeStored("browser", NEWS);
}

let rest: Promise<void> | null = null;

/**
 * Resolves when every page's words are here in the language of the visit: pages outside `parts.ts` wait for it, because many
 * words are read while modules load. A part that does not come is asked for again by the next page; until then it is English.
 */
export function allWords(): Promise<void> {
  const locale = current;
  if (locale === "en") return Promise.resolve();
  rest ??= import("./translate").then(({ translateRest }) => translateRest(locale)).catch(() => void (rest = null));
  return rest;
}

/** Settles the language before anything is shown; a language other than English brings its catalogue. */
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
  if (locale === "en") return;
  try {
    const { translate, daysOf } = await import("./translate");
    await translate(locale);
    current = locale;
    ownDays = daysOf(locale);
    document.documentElement.lang = locale;
  } catch {
    // the catalogue did not come: English is at hand
  }
}
