/** The answers while a person writes: kept in the browser at every change, saved to the account soon after. */
import { useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import { errorHint, nothingWritten } from "@/lib/errors";
import { newKey } from "@/lib/new-key";
import { forgetUnsent } from "@/lib/stored";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import { emptyAnswers, isBlank, isUntouched, stepNumber, type Answers } from "./answers";
import { readDraft, saveDraft, type LoadedDraft } from "./api";
import { differences } from "./columns";
import { furthestStep } from "./progress";
import { contactFields, personalFields } from "./schema";
import { forget, isOthersDevice, keep, leaveNothingHere, type Kept, type SentRequest, type Slot } from "./storage";

/** How long after the last key the account's draft is written. */
const AUTOSAVE_MS = 1_200;
/** The number of saves without an answer that a reload remembers. */
const KNOWN = 10;

export type Saving =
  | { state: "idle" }
  | { state: "saving" }
  | { state: "browser" }
  | { state: "account"; at: Date }
  | { state: "failed"; error: unknown };

export type Change = (patch: Partial<Answers> | ((answers: Answers) => Partial<Answers>)) => void;

export interface AnswersState {
  answers: Answers;
  sent: SentRequest | null;
  saving: Saving;
  /** Takes what a person answers. Answers that wait to be sent no longer do. */
  change: Change;
  /** Takes what the page fills in by itself. */
  fill: Change;
  /** Writes the draft now and gives its id; throws what the server answers. */
  save: () => Promise<string>;
  /** The draft as it was saved elsewhere since this page last read or saved it; null if there is nothing to choose. */
  meanwhile: LoadedDraft | null;
  /** Another number for other answers: fields that were shown with the last ones have to be shown anew. */
  version: number;
  /** Continues with one of the two versions. */
  settle: (which: "mine" | "theirs") => void;
  /** The draft's `updated_at` that this page knows. */
  seen: () => string | null;
  /**
   * After `draft_changed`: reads the draft. True if this page saved it last after all, so that it can be written; otherwise
   * `meanwhile` is set.
   */
  meet: (draftId: string) => Promise<boolean>;
  /** Continues without a draft that was deleted elsewhere, and tells the person if documents were deleted with it. */
  leaveDraft: (draftId: string) => void;
  /** The answers wait to be sent when online. */
  waits: boolean;
  /** They waited until they were changed: the person has to send them again. */
  stopped: boolean;
  /** `tried`: the answers that could not be sent. They wait unless they were changed meanwhile. */
  setWaits: (waits: boolean, tried?: Answers) => void;
  /** Whether the answers are still these, but for what only the page knows. */
  isCurrent: (answers: Answers) => boolean;
  /** The person is changing the request, so it no longer goes by itself. */
  stopWaiting: () => void;
  /** The request was sent, so the answers are cleared. */
  finish: (sent: SentRequest) => void;
  /** Starts another request with the same answers; the sent one is unchanged. */
  renew: () => void;
  /** Throws the answers away (a saved draft stays). */
  clear: () => void;
  /** A guest said that the device is not theirs: the answers are kept in the tab only. */
  tabOnly: boolean;
  /** Says so. */
  keepInTab: () => void;
}

/** What the person said, in an order that does not depend on where it was written down. */
const contentOf = (answers: Answers): string =>
  JSON.stringify([
    answers.category?.id,
    answers.nonprofits.map(({ id }) => id),
    [...personalFields, ...contactFields].map((field) => answers.identity[field]),
    answers.texts ?? false,
    answers.description,
    answers.amount,
    answers.consent,
    answers.documents.map(({ id }) => id),
    answers.account?.id,
  ]);

/** Whether these are the same answers for whoever reads the request. */
const sameContent = (a: Answers, b: Answers): boolean => a === b || contentOf(a) === contentOf(b);

/** The draft's documents are stored by themselves, so both versions have them. A guest's uploads belong to the key. */
const documentsOf = (mine: Answers, theirs: LoadedDraft): Answers["documents"] => [
  ...mine.documents.filter(({ slot }) => slot),
  ...theirs.answers.documents,
];

/** Another device saved the draft since this page last read or saved it. */
export const isChangedMeanwhile = (error: unknown): boolean => errorHint(error) === "draft_changed";

/** The server has no such draft. */
export const isDraftGone = (error: unknown): boolean => errorHint(error) === "request_not_found";

export function useAnswers(slot: Slot, initial: Kept, signedIn: boolean): AnswersState {
  const [kept, setKept] = useState(initial);
  const [saving, setSaving] = useState<Saving>({ state: "idle" });
  const latest = useRef(kept);
  /** Saves queue up, so that two never make two drafts. */
  const queue = useRef<Promise<unknown>>(Promise.resolve());

  /** What the draft may be, as far as this page knows: as it was read or saved, and saves that were not answered. */
  const known = useRef<readonly Answers[]>(initial.known ?? (initial.dirty ? [] : [initial.answers]));
  const keepHere = useCallback(
    // a guest has no draft
    (kept: Kept) => keep(slot, slot.userId === null ? kept : { ...kept, known: known.current.slice(-KNOWN) }),
    [slot],
  );
  const [meanwhile, setMeanwhile] = useState<LoadedDraft | null>(null);
  const [version, setVersion] = useState(0);

  const put = useCallback((next: Kept) => {
    latest.current = next;
    setKept(next);
  }, []);

  const stopWaiting = useCallback(() => {
    if (!latest.current.waits) return;
    put({ ...latest.current, waits: false, stopped: true });
    toast({ variant: "info", title: t("unsent.waitsTitle"), description: t("unsent.stoppedBody") });
  }, [put]);

  const fill = useCallback<Change>(
    (patch) => {
      const { answers } = latest.current;
      const changes = typeof patch === "function" ? patch(answers) : patch;
      if (Object.keys(changes).length === 0) return;
      const next = { ...answers, ...changes };
      // the proof is not valid for another address
      if (next.account && next.account.email !== next.identity.email.trim()) next.account = null;
      // knowing who is here is not yet a new request
      put({ ...latest.current, answers: next, dirty: true, sent: isBlank(next) ? latest.current.sent : null });
    },
    [put],
  );
  const change = useCallback<Change>(
    (patch) => {
      const { answers } = latest.current;
      fill(patch);
      // half of a change must not be sent
      if (!sameContent(answers, latest.current.answers)) stopWaiting();
    },
    [fill, stopWaiting],
  );

  const leaveDraft = useCallback(
    (draftId: string) => {
      const { answers } = latest.current;
      if (answers.draftId !== draftId) return;
      // a guest's uploads belong to the key
      const documents = answers.documents.filter(({ slot }) => slot);
      put({ ...latest.current, answers: { ...answers, draftId: null, documents }, dirty: true });
      if (documents.length === answers.documents.length) return;
      stopWaiting();
      toast({
        variant: "destructive",
        title: t("unsent.documentsGoneTitle"),
        description: t("unsent.documentsGone"),
      });
    },
    [put, stopWaiting],
  );

  /** The version saved elsewhere takes the place of this one. */
  const take = useCallback(
    (theirs: LoadedDraft) => {
      const { answers: mine, waits, stopped } = latest.current;
      const { form, key } = mine;
      const answers = { ...theirs.answers, documents: documentsOf(mine, theirs), form, key };
      known.current = [answers];
      const stops = waits || stopped ? { stopped: true } : {};
      put({ answers, dirty: false, syncedAt: theirs.updatedAt, sent: null, ...stops });
      setVersion((version) => version + 1);
    },
    [put],
  );
  /** This version is going to be written over the one saved elsewhere. */
  const writeOver = useCallback(
    (theirs: LoadedDraft) => {
      const answers = { ...latest.current.answers, documents: documentsOf(latest.current.answers, theirs) };
      put({ ...latest.current, answers, dirty: true, syncedAt: theirs.updatedAt });
    },
    [put],
  );
  const meet = useCallback(
    async (draftId: string) => {
      const theirs = await readDraft(draftId);
      if (theirs === null || latest.current.answers.draftId !== draftId) return false;
      const own =
        theirs.updatedAt === latest.current.syncedAt ||
        known.current.some((answers) => differences(answers, theirs.answers).length === 0);
      if (own) writeOver(theirs);
      else setMeanwhile(theirs);
      return own;
    },
    [writeOver],
  );
  const settle = useCallback(
    (which: "mine" | "theirs") => {
      if (meanwhile === null) return;
      setMeanwhile(null);
      setSaving({ state: "idle" });
      if (which === "mine") writeOver(meanwhile);
      else take(meanwhile);
    },
    [meanwhile, take, writeOver],
  );
  const seen = useCallback(() => latest.current.syncedAt, []);

  const save = useCallback(() => {
    const write = async ({ answers, syncedAt }: Kept) => {
      const step = stepNumber[furthestStep(answers)];
      known.current = [...known.current.filter((one) => one !== answers), answers];
      // the page may be reloaded before the answer
      if (latest.current.answers.key === answers.key) keepHere(latest.current);
      try {
        return await saveDraft(answers, step, syncedAt);
      } catch (error) {
        if (nothingWritten(error)) known.current = known.current.filter((one) => one !== answers);
        throw error;
      }
    };
    const run = queue.current.then(async () => {
      let before = latest.current;
      setSaving({ state: "saving" });
      try {
        const row = await write(before).catch(async (error: unknown) => {
          const { draftId, key } = before.answers;
          if (draftId === null || latest.current.answers.key !== key) throw error;
          if (isDraftGone(error)) leaveDraft(draftId);
          else if (!isChangedMeanwhile(error) || !(await meet(draftId))) throw error;
          before = latest.current;
          // the key makes a new draft
          return write(before).catch(async (again: unknown) => {
            // saved elsewhere once more
            if (isChangedMeanwhile(again)) await meet(draftId);
            throw again;
          });
        });
        const now = latest.current;
        // sent or cleared meanwhile: nothing to note
        if (now.answers.key === before.answers.key) {
          known.current = [before.answers];
          put({
            ...now,
            answers: { ...now.answers, draftId: row.id },
            syncedAt: row.updated_at,
            dirty: now.answers !== before.answers,
          });
        }
        setSaving({ state: "account", at: new Date() });
        return row.id;
      } catch (error) {
        setSaving({ state: "failed", error });
        throw error;
      }
    });
    queue.current = run.catch(() => undefined);
    return run;
  }, [put, keepHere, leaveDraft, meet]);

  useEffect(() => {
    // an account's name and address are filled in by the page, a guest's are typed
    const nothing = slot.userId === null ? isUntouched(kept.answers) : isBlank(kept.answers);
    if (nothing && !kept.sent) forget(slot);
    else keepHere(kept);
  }, [kept, slot, keepHere]);

  const autosave = useEffectEvent(() => {
    // told in the page; the browser's copy stays
    save().catch((error: unknown) => {
      // the page may be read far below its notice
      if (isChangedMeanwhile(error)) toast({ variant: "info", title: t("unsent.meanwhileTitle") });
    });
  });
  useEffect(() => {
    if (!signedIn || !kept.dirty || kept.answers.category === null || meanwhile !== null) return;
    const timer = setTimeout(autosave, AUTOSAVE_MS);
    window.addEventListener("online", autosave);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("online", autosave);
    };
  }, [signedIn, kept, meanwhile]);

  // Another device may have saved the draft while this page was in the background.
  const readAgain = useEffectEvent(async () => {
    const before = latest.current;
    const { draftId } = before.answers;
    if (!signedIn || draftId === null || before.dirty || before.waits) return;
    const theirs = await readDraft(draftId).catch(() => null);
    if (theirs === null || latest.current !== before || theirs.updatedAt === before.syncedAt) return;
    if (differences(before.answers, theirs.answers).length === 0) {
      put({ ...before, syncedAt: theirs.updatedAt });
      return;
    }
    take(theirs);
    toast({ variant: "info", title: t("unsent.readAgainTitle"), description: t("unsent.readAgainBody") });
  });
  useEffect(() => {
    // a draft at its own address was just read
    if (slot.draftId === null) void readAgain();
    const back = () => {
      if (document.visibilityState === "visible") void readAgain();
    };
    // a phone that shows the page again may not give it the focus
    window.addEventListener("focus", back);
    document.addEventListener("visibilitychange", back);
    return () => {
      window.removeEventListener("focus", back);
      document.removeEventListener("visibilitychange", back);
    };
  }, [slot]);

  const reset = useCallback(
    (sent: SentRequest | null) => {
      forget(slot);
      if (slot.draftId) forget({ ...slot, draftId: null });
      setSaving({ state: "idle" });
      setMeanwhile(null);
      known.current = [];
      put({
        answers: emptyAnswers(newKey(), latest.current.answers.form),
        dirty: false,
        syncedAt: null,
        sent,
      });
    },
    [put, slot],
  );
  const finish = useCallback(
    (sent: SentRequest) => {
      forgetUnsent();
      reset(sent);
    },
    [reset],
  );
  const clear = useCallback(() => reset(null), [reset]);
  const renew = useCallback(() => {
    const { answers } = latest.current;
    put({ ...latest.current, answers: { ...answers, key: newKey(), draftId: null, documents: [] }, dirty: true });
  }, [put]);

  const isCurrent = useCallback((answers: Answers) => sameContent(answers, latest.current.answers), []);
  const setWaits = useCallback(
    (waits: boolean, tried?: Answers) => {
      put({ ...latest.current, waits, stopped: false });
      if (tried && !isCurrent(tried)) stopWaiting();
    },
    [put, isCurrent, stopWaiting],
  );

  const [tabOnly, setTabOnly] = useState(() => !signedIn && isOthersDevice());
  const keepInTab = useCallback(() => {
    leaveNothingHere(slot);
    setTabOnly(true);
  }, [slot]);

  const shown: Saving = !signedIn && kept.dirty && !isUntouched(kept.answers) ? { state: "browser" } : saving;
  return {
    answers: kept.answers,
    sent: kept.sent,
    saving: shown,
    change,
    fill,
    save,
    meanwhile,
    version,
    settle,
    seen,
    meet,
    leaveDraft,
    waits: kept.waits === true,
    stopped: kept.stopped === true,
    setWaits,
    isCurrent,
    stopWaiting,
    finish,
    renew,
    clear,
    tabOnly,
    keepInTab,
  };
}
