/** The pseudo-language `?lang=ar-XB`. */
import { fill, find, setTranslator } from "./catalogue";

/** Unicode's right-to-left override and its end. */
const [TURN, BACK] = ["\u202e", "\u202c"];

export function translatePseudo(): void {
  setTranslator((key, params) => {
    const count = params?.count;
    try {
      return TURN + fill(find(key, typeof count === "number" ? count : undefined), params) + BACK;
    } catch {
      return undefined; // words that English needs not: see `localName`
    }
  });
}
