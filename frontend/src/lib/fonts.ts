/**
 * Loads the web font after the first question of the request form (`data-fonts="later"`, set by `public/theme.js` for
 * new visitors): on a slow line it would delay the question. It is fetched while the question is read and applied on
 * the next page, because re-wrapped lines would move the text.
 */
import { store } from "./stored";

export function fetchFonts(): void {
  void document.fonts.load('1em "Source Sans 3 Variable"').then(
    () => store("browser", "aidbridge-fonts", "yes"),
    () => undefined,
  );
}

export function showFonts(): void {
  delete document.documentElement.dataset.fonts;
}
