/**
 * The answers at the start of a visit: the browser's copy, the saved draft, or none. Pure except for reading the copy.
 */
import { newKey } from "@/lib/new-key";
import { emptyAnswers, withCategory, type Answers, type Chosen } from "./answers";
import type { LoadedDraft } from "./api";
import { keptAt, readKept, type Kept } from "./storage";

export const fresh = (form: Answers["form"]): Kept => ({
  answers: emptyAnswers(newKey(), form),
  dirty: false,
  syncedAt: null,
  sent: null,
});

/** The browser's copy for this person. A guest's answers move along by `guest-answers.ts`. */
export function startHere(userId: string | null, form: Answers["form"]): Kept {
  const kept = readKept({ userId, draftId: null });
  const draftId = kept?.answers.draftId ?? null;
  // at its own address the draft may have been saved since
  return (userId !== null && draftId !== null ? keptOfDraft(userId, draftId) : kept) ?? fresh(form);
}

/** The same with the first question answered. */
export const begunWith = (start: Kept, category: Chosen, selected: Chosen | null): Kept => ({
  ...start,
  dirty: true,
  answers: withCategory(start.answers, category, selected),
});

/** The browser's last copy of one draft, wherever it was begun. Each visit starts with the last one, so it holds all that was typed. */
export function keptOfDraft(userId: string, draftId: string): Kept | null {
  const [last] = [
    { userId, draftId },
    { userId, draftId: null },
  ]
    .filter((slot) => readKept(slot)?.answers.draftId === draftId)
    .sort((a, b) => keptAt(b) - keptAt(a));
  return last ? readKept(last) : null;
}

/**
 * What this tab holds at the address of a draft that is no longer there: the confirmation that it was sent, or the next
 * request begun after that.
 */
export function keptAfterDraft(userId: string, draftId: string): Kept | null {
  const kept = readKept({ userId, draftId });
  return kept && (kept.sent || kept.answers.draftId !== draftId) ? kept : null;
}

/** Unsaved work here wins; otherwise whichever side is newer. */
export function startFromDraft(kept: Kept | null, draft: LoadedDraft): Kept {
  if (kept && (kept.dirty || (kept.syncedAt ?? "") >= draft.updatedAt)) return kept;
  return {
    answers: { ...draft.answers, key: kept?.answers.key ?? newKey() },
    dirty: false,
    syncedAt: draft.updatedAt,
    sent: null,
  };
}
