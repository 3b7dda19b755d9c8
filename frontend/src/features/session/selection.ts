/**
 * The selected nonprofit in browser storage (the spec's `selectedNonprofit`), with whose choice it is: on a shared device one
 * person's choice is never the next one's.
 */
import type { SelectedNonprofit } from "@/lib/session";
import { readStoredJson, removeStored, store } from "@/lib/stored";

const KEY = "selectedNonprofit";

export interface StoredSelection {
  nonprofit: SelectedNonprofit;
  /** The account's id; null: chosen while nobody was signed in. */
  of: string | null;
}

export function readSelection(): StoredSelection | null {
  const value = readStoredJson("browser", KEY) as { id?: unknown; name?: unknown; of?: unknown } | null;
  if (typeof value?.id !== "string" || typeof value.name !== "string") return null;
  // earlier versions did not write whose it is
  if (value.of !== null && typeof value.of !== "string") return null;
  return { nonprofit: { id: value.id, name: value.name }, of: value.of };
}

/** If storage is unavailable, the choice is kept for this page, and in the profile if signed in. */
export const storeSelection = ({ nonprofit: { id, name }, of }: StoredSelection) =>
  void store("browser", KEY, JSON.stringify({ id, name, of }));

export const forgetSelection = () => removeStored("browser", KEY);
