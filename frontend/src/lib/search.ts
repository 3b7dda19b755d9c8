/** One way to search everywhere: every word that was typed is found, wherever it stands; signs of a pattern are letters. */

/** At most this many words count; more are no search. */
const MOST_WORDS = 8;

/** The typed words as patterns for `like`; the database's `private.search_patterns` makes the same. */
export function searchPatterns(typed: string): string[] {
  return typed
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .slice(0, MOST_WORDS)
    .map((word) => `%${word.replace(/[\\%_]/g, "\\$&")}%`);
}
