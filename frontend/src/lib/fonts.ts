/**
 * The web font comes after the first question of the request form (`data-fonts="later"`, set by `public/theme.js` for who arrives
 * there for the first time): on a bad line it would take the line from what can be answered.
 */
import { store } from "./stored";

export function showFonts(): void {
  delete document.documentElement.dataset.fonts;
  store("browser", "aidbridge-fonts", "yes");
}
