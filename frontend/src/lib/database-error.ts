/** The stable code (`hint`) and the JSON (`details`) of an error that a database function raised: `docs/database.md`. */

export interface DatabaseError {
  hint: string;
  details: Record<string, unknown>;
}

/** Null when the error did not come from one of our functions. */
export function databaseError(error: unknown): DatabaseError | null {
  if (typeof error !== "object" || error === null || !("hint" in error) || typeof error.hint !== "string") return null;
  let details: unknown = null;
  if ("details" in error && typeof error.details === "string") {
    try {
      details = JSON.parse(error.details);
    } catch {
      // PostgreSQL's own details are a sentence
    }
  }
  return {
    hint: error.hint,
    details: typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {},
  };
}

/** Messages of `validation_failed` and `invalid_amount` by field, for `form.setError`. */
export function fieldErrors(error: unknown): Record<string, string> {
  const fields = databaseError(error)?.details.fields;
  if (typeof fields !== "object" || fields === null) return {};
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}
