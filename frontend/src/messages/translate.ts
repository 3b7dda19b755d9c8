/** Words in another language than English, by Lingui. Loaded only when one is wanted; what is not translated stays English. */
import { setupI18n, type Messages } from "@lingui/core";
import { setTranslator } from "./catalogue";
import type { Locale } from "./locale";

const catalogues: Record<Exclude<Locale, "en">, () => Promise<{ messages: Messages }>> = {
  es: () => import("./po/es.po"),
  fr: () => import("./po/fr.po"),
  ht: () => import("./po/ht.po"),
};

/** No rules for Haitian Creole in every engine; its nouns do not change with the number. */
const rulesOf = (locale: Locale) => (locale === "ht" ? "fr" : locale);

export async function translate(locale: Locale): Promise<void> {
  if (locale === "en") return setTranslator(null);
  const { messages } = await catalogues[locale]();
  const i18n = setupI18n({ locale: rulesOf(locale), messages: { [rulesOf(locale)]: messages } });
  setTranslator((key, params) => {
    if (!messages[key]) return undefined;
    // a place without a value stays a place, as in English: `components/words.tsx` puts elements there
    const values = new Proxy(params ?? {}, {
      get: (given, name) => (typeof name === "string" && name in given ? given[name] : `{${String(name)}}`),
    });
    return i18n._(key, values as Record<string, unknown>);
  });
}
