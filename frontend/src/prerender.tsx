/**
 * Pages that people arrive at, as markup, for `scripts/prerender.mjs`: what a visitor sees before the first script has run.
 * The screens come after the language, because they read words while they load.
 */
import { speakLocale, type Locale } from "@/messages/locale";

export { locales } from "@/messages/locale";

/** The pages in one language, by the name that `public/theme.js` gives their address. */
export async function landings(locale: Locale): Promise<Record<string, string>> {
  await speakLocale(locale);
  if (locale !== "en") {
    const { translateMore } = await import("@/messages/translate");
    await Promise.all([translateMore(locale, "first"), translateMore(locale, "rest")]);
  }
  const { markups } = await import("./prerender-screens");
  return markups();
}
