/**
 * The web font comes after the first question of the request form (`data-fonts="later"`, set by `public/theme.js` for who arrives
 * there for the first time): on a bad line it would take the line from what can be answered. It is fetched while the question is read,
 * and shown with the next page: lines that break anew would move what is being read.
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
