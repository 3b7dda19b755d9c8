/** The search semantics everywhere: every typed word must occur somewhere; pattern characters are literal. */

/** At most this many words are used. */
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
