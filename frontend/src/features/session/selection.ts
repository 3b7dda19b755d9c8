/** The selected nonprofit in browser storage (the spec's `selectedNonprofit`). */
import type { SelectedNonprofit } from "@/lib/session";

const KEY = "selectedNonprofit";

export function readSelection(): SelectedNonprofit | null {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "null");
    if (typeof value !== "object" || value === null || !("id" in value) || !("name" in value)) return null;
    return typeof value.id === "string" && typeof value.name === "string" ? { id: value.id, name: value.name } : null;
  } catch {
    return null;
  }
}

export function storeSelection(nonprofit: SelectedNonprofit): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(nonprofit));
  } catch {
    // Storage is closed: the choice holds for this page, and on the profile when signed in.
  }
}

export function forgetSelection(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // nothing was kept
  }
}
