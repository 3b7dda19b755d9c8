/** The selected nonprofit in browser storage (the spec's `selectedNonprofit`). */
import type { SelectedNonprofit } from "@/lib/session";
import { readStoredJson, removeStored, store } from "@/lib/stored";

const KEY = "selectedNonprofit";

export function readSelection(): SelectedNonprofit | null {
  const value = readStoredJson("browser", KEY);
  if (typeof value !== "object" || value === null || !("id" in value) || !("name" in value)) return null;
  return typeof value.id === "string" && typeof value.name === "string" ? { id: value.id, name: value.name } : null;
}

/** If storage is unavailable, the choice is kept for this page, and in the profile if signed in. */
export const storeSelection = (nonprofit: SelectedNonprofit) => void store("browser", KEY, JSON.stringify(nonprofit));

export const forgetSelection = () => removeStored("browser", KEY);
