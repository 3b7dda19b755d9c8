/**
 * What this browser keeps: in this tab, or for all of them. Storage may be closed or full: then nothing is kept, and what was
 * to be kept is on the page alone.
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

/** What was stored as JSON; null when there is none that can be read. */
export function readStoredJson(shelf: Shelf, name: string): unknown {
  try {
    return JSON.parse(shelves[shelf]().getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/** False when the browser did not take it. */
export function store(shelf: Shelf, name: string, text: string): boolean {
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

const GUEST_ANSWERS = "aidbridge-request:guest:";

/** Leaves nothing behind of what was typed or opened here without an account. */
export function forgetEverythingTyped(): void {
  try {
    sessionStorage.clear();
    for (const name of Object.keys(localStorage)) if (name.startsWith(GUEST_ANSWERS)) localStorage.removeItem(name);
  } catch {
    // storage is closed: nothing was kept
  }
}
