/**
 * The answers of a guest when somebody signs in on the same device: they move into the account only if they are this
 * person's. On a shared device they may be another person's, whose name and need must not get into this account.
 */
import { readStored, store } from "@/lib/stored";
import { isBlank, isUntouched } from "./answers";
import { forget, keep, readKept, type Kept, type Slot } from "./storage";

const GUEST: Slot = { userId: null, draftId: null };

/** The key of the guest's answers that this account said are not theirs. Forgotten at 'Logout' with what they typed. */
const notTheirs = (userId: string) => `aidbridge-not-mine:${userId}`;

const folded = (email: string) => email.trim().toLowerCase();

export interface GuestAnswers {
  kept: Kept;
  /** They name the account's address or none. Otherwise the person has to be asked. */
  theirs: boolean;
}

/** A guest's answers on this device; null if there are none, or if the account has begun a request of its own. */
export function guestAnswers(user: { id: string; email: string }): GuestAnswers | null {
  const own = readKept({ userId: user.id, draftId: null });
  if (own && (own.sent || !isBlank(own.answers))) return null;
  const kept = readKept(GUEST);
  if (!kept || isUntouched(kept.answers) || readStored("tab", notTheirs(user.id)) === kept.answers.key) return null;
  const named = folded(kept.answers.identity.email);
  return { kept, theirs: named === "" || named === folded(user.email) };
}

/** Moves them into the account. They are not sent by themselves: the person may have signed in before the connection came back. */
export function adopt(userId: string, { answers, syncedAt, waits, stopped }: Kept): Kept {
  const adopted: Kept = {
    answers: { ...answers, account: null },
    dirty: true,
    syncedAt,
    sent: null,
    ...(waits || stopped ? { stopped: true } : {}),
  };
  keep({ userId, draftId: null }, adopted);
  forget(GUEST);
  return adopted;
}

/** Leaves them to whoever began them, and does not ask this account again. */
export const leaveToGuest = (userId: string, kept: Kept): boolean => store("tab", notTheirs(userId), kept.answers.key);
