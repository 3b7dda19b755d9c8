/**
 * 'req 42', 'REQ42', '#42' and 'REQ–042' → 'REQ-042': the number of a request as people copy it by hand or as their keyboard corrects it.
 * Anything else is only trimmed, and finds nothing. `private.number_of` in the database does the same.
 */
export function normalizeNumber(typed: string): string {
  const plain = typed.toUpperCase().replace(/\s+/g, "");
  const digits = /^(?:REQ)?[-#.:_‐‑‒–—−]?0*(\d+)$/.exec(plain)?.[1];
  return digits === undefined ? plain : `REQ-${digits.padStart(3, "0")}`;
}
