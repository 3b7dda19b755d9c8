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

/** False if it could not be stored. */
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

/** Deletes everything typed or opened here without an account. */
export function forgetEverythingTyped(): void {
  try {
    sessionStorage.clear();
    for (const name of Object.keys(localStorage)) if (name.startsWith(GUEST_ANSWERS)) localStorage.removeItem(name);
  } catch {
    // storage is unavailable, so nothing was stored
  }
}
