/**
 * The browser's copy of an unsent request. Signed out it stays in localStorage; signed in it lives with
 * the tab (sessionStorage), bound to the account, because the account keeps the draft itself.
 */
import { emptyIdentity, type Answers } from "./answers";

export interface SentRequest {
  number: string;
  email: string;
  nonprofits: readonly string[];
  /** ISO instant. */
  at: string;
  /** Sent signed out for an account that the visitor proved to be theirs: whose it is. */
  account?: string;
}

export interface Kept {
  answers: Answers;
  /** Changed since the account last took it. */
  dirty: boolean;
  /** The saved draft's `updated_at` when it was last taken or loaded. */
  syncedAt: string | null;
  /** The last request that was sent from here: the confirmation survives a reload. */
  sent: SentRequest | null;
}

/** Whose answers, and of which draft (null: a request begun here). */
export interface Slot {
  userId: string | null;
  draftId: string | null;
}

const VERSION = 1;
const name = ({ userId, draftId }: Slot) => `aidbridge-request:${userId ?? "guest"}:${draftId ?? "new"}`;

function shelf(userId: string | null): Storage | null {
  try {
    return userId === null ? window.localStorage : window.sessionStorage;
  } catch {
    return null; // storage is closed: the page itself still holds the answers
  }
}

export function readKept(slot: Slot): Kept | null {
  const raw = shelf(slot.userId)?.getItem(name(slot));
  if (!raw) return null;
  try {
    const found = JSON.parse(raw) as { version?: number } & Kept;
    if (found.version !== VERSION || typeof found.answers?.key !== "string") return null;
    const { answers, dirty, syncedAt, sent } = found;
    return { answers: { ...answers, identity: { ...emptyIdentity, ...answers.identity } }, dirty, syncedAt, sent };
  } catch {
    return null;
  }
}

/** False when the browser did not take it (full or closed). */
export function keep(slot: Slot, kept: Kept): boolean {
  try {
    const to = shelf(slot.userId);
    to?.setItem(name(slot), JSON.stringify({ version: VERSION, ...kept }));
    return to !== null;
  } catch {
    return false;
  }
}

export function forget(slot: Slot): void {
  try {
    shelf(slot.userId)?.removeItem(name(slot));
  } catch {
    // nothing was kept
  }
}
