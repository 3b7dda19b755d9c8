/**
 * Browser storage, per tab or shared by all tabs. If storage is unavailable or full, nothing is stored and the data is
 * only in the page.
 */
export type Shelf = "tab" | "browser";

const shelves: Record<Shelf, () => Storage> = {
  tab: () => window.sessionStorage,
  browser: () => window.localStorage,
};

export function readStored(shelf: Shelf, name: string): string | null {
  try {
    return shelves[shelf]().getItem(name);
  } catch {
    return null;
  }
}

/** A stored JSON value; null if missing or invalid. */
export function readStoredJson(shelf: Shelf, name: string): unknown {
  try {
    return JSON.parse(shelves[shelf]().getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/** The person has left by 'Exit this page'. The page's code and its requests run on until the other site answers. */
let left = false;

/** False if it could not be stored. */
export function store(shelf: Shelf, name: string, text: string): boolean {
  if (left) return false;
  try {
    shelves[shelf]().setItem(name, text);
    return true;
  } catch {
    return false;
  }
}

export function removeStored(shelf: Shelf, name: string): void {
  try {
    shelves[shelf]().removeItem(name);
  } catch {
    // nothing was kept
  }
}

/** Where supabase-js keeps the session in localStorage. */
export const SESSION_STORAGE_KEY = "aidbridge-auth";

/** Answers of the request form, followed by their owner and their draft. */
export const ANSWERS = "aidbridge-request:";
const GUEST_ANSWERS = `${ANSWERS}guest:`;

/** A guest's answers end after this: the device may be shared. */
export const GUEST_KEEP_MS = 24 * 60 * 60_000;

/** Whether what was kept then has come to its end. */
export const isOver = (keptAt: number): boolean => Date.now() - keptAt > GUEST_KEEP_MS;

interface KeptAnswers {
  keptAt?: unknown;
  waits?: unknown;
  stopped?: unknown;
}

/** When a guest's answers ended that waited to be sent. Says nothing of them. */
const NEVER_SENT = "aidbridge-never-sent";
const TOLD_FOR_MS = 7 * GUEST_KEEP_MS;

/** Deletes a guest's answers that have come to their end, and remembers for a week if they waited to be sent. */
export function endAnswers(name: string, kept: KeptAnswers | null): void {
  removeStored("browser", name);
  if (kept?.waits === true) store("browser", NEVER_SENT, String(Date.now()));
}

/** The same of all that are over, on whatever page the next visit begins. */
export function forgetOldAnswers(): void {
  try {
    for (const name of Object.keys(localStorage)) {
      if (!name.startsWith(GUEST_ANSWERS)) continue;
      const kept = readStoredJson("browser", name) as KeptAnswers | null;
      if (typeof kept?.keptAt !== "number" || isOver(kept.keptAt)) endAnswers(name, kept);
    }
  } catch {
    // storage is unavailable, so nothing was stored
  }
}

/**
 * A guest's request that was to be sent and is not: it waits for a connection, it was changed while it waited, or its
 * answers have been deleted meanwhile.
 */
export function unsentRequest(): "waits" | "stopped" | "deleted" | null {
  try {
    const kept = Object.keys(localStorage)
      .filter((name) => name.startsWith(GUEST_ANSWERS))
      .map((name) => readStoredJson("browser", name) as KeptAnswers | null);
    if (kept.some((answers) => answers?.waits === true)) return "waits";
    if (kept.some((answers) => answers?.stopped === true)) return "stopped";
  } catch {
    return null;
  }
  const at = Number(readStored("browser", NEVER_SENT) ?? "0");
  return Date.now() - at < TOLD_FOR_MS ? "deleted" : null;
}

/** The person was told, or has sent another one. */
export const forgetUnsent = (): void => removeStored("browser", NEVER_SENT);

/** Deletes this tab's copies of a draft that was deleted: it would come back from them, without a row to be saved in. */
export function forgetDraft(userId: string, draftId: string): void {
  removeStored("tab", `${ANSWERS}${userId}:${draftId}`);
  const begun = `${ANSWERS}${userId}:new`;
  const kept = readStoredJson("tab", begun) as { answers?: { draftId?: unknown } } | null;
  if (kept?.answers?.draftId === draftId) removeStored("tab", begun);
}

/** Deletes what this account typed in this tab: everything whose name contains the user's id. */
export function forgetTypedBy(userId: string): void {
  try {
    for (const name of Object.keys(sessionStorage)) if (name.includes(userId)) sessionStorage.removeItem(name);
  } catch {
    // storage is unavailable, so nothing was stored
  }
}

/** Deletes everything typed or opened here without an account. From then on, this page stores nothing. */
export function forgetEverythingTyped(): void {
  left = true;
  try {
    sessionStorage.clear();
    for (const name of Object.keys(localStorage))
      if (name.startsWith(GUEST_ANSWERS) || name === NEVER_SENT) localStorage.removeItem(name);
  } catch {
    // storage is unavailable, so nothing was stored
  }
}
