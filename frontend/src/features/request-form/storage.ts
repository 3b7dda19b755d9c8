/**
 * The browser's copy of an unsent request. Signed out it stays in localStorage; signed in it lives with
 * the tab (sessionStorage), bound to the account, because the account keeps the draft itself.
 */
import { ANSWERS, endAnswers, isOver, readStored, readStoredJson, removeStored, store, type Shelf } from "@/lib/stored";
import { emptyIdentity, type Answers } from "./answers";

export interface SentRequest {
  number: string;
  email: string;
  nonprofits: readonly string[];
  /** ISO instant. */
  at: string;
  /** The verified account for a request sent while signed out. */
  account?: string;
}

export interface Kept {
  answers: Answers;
  /** Changed since the last save to the account. */
  dirty: boolean;
  /** The saved draft's `updated_at` when it was last taken or loaded. */
  syncedAt: string | null;
  /** What the saved draft may be: as it was read or saved from here, and saves that were not answered. */
  known?: readonly Answers[];
  /** Waiting to be sent: the server could not be reached, and it is sent automatically later. */
  waits?: boolean;
  /** It waited until it was changed or taken into an account. It is sent only when the person says so again. */
  stopped?: boolean;
  /** The last request that was sent from here: the confirmation survives a reload. */
  sent: SentRequest | null;
}

/** The owner of the answers, and their draft (null: a request begun here). */
export interface Slot {
  userId: string | null;
  draftId: string | null;
}

const VERSION = 1;
const name = ({ userId, draftId }: Slot) => `${ANSWERS}${userId ?? "guest"}:${draftId ?? "new"}`;

/** A guest said that the device is shared: answers are kept in this tab only. */
const NOT_MINE = "aidbridge-not-my-phone";
export const isOthersDevice = (): boolean => readStored("tab", NOT_MINE) !== null;

const shelf = ({ userId }: Slot): Shelf => (userId === null && !isOthersDevice() ? "browser" : "tab");

export function readKept(slot: Slot): Kept | null {
  const found = readStoredJson(shelf(slot), name(slot)) as ({ version?: number; keptAt?: number } & Kept) | null;
  if (found === null || typeof found !== "object") return null;
  if (slot.userId === null && isOver(found.keptAt ?? Date.now())) {
    endAnswers(name(slot), found);
    return null;
  }
  if (found.version !== VERSION || typeof found.answers?.key !== "string") return null;
  const { answers, dirty, syncedAt, known, sent, waits, stopped } = found;
  const whole = { ...answers, identity: { ...emptyIdentity, ...answers.identity } };
  return {
    answers: whole,
    dirty,
    syncedAt,
    sent,
    ...(known ? { known } : {}),
    ...(waits ? { waits } : {}),
    ...(stopped ? { stopped } : {}),
  };
}

/** When it was kept, in milliseconds; 0 if it is not. */
export function keptAt(slot: Slot): number {
  const found = readStoredJson(shelf(slot), name(slot)) as { keptAt?: number } | null;
  return found?.keptAt ?? 0;
}

/** False if the browser's storage is full or unavailable. */
export const keep = (slot: Slot, kept: Kept): boolean =>
  store(shelf(slot), name(slot), JSON.stringify({ version: VERSION, keptAt: Date.now(), ...kept }));

/** Moves a guest's answers from the browser's storage to the tab's. False if the tab cannot store them either. */
export function leaveNothingHere(slot: Slot): boolean {
  const kept = readKept(slot);
  forget(slot);
  return store("tab", NOT_MINE, "yes") && (kept === null || keep(slot, kept));
}

export const forget = (slot: Slot): void => removeStored(shelf(slot), name(slot));
