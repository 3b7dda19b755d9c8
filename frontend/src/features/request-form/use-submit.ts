/** Sends the request only once, however often the button is pressed, and shows the server's errors at their steps. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";
import { errorHint, errorMessage, fieldErrors, isNetworkError, isSessionExpired } from "@/lib/errors";
import { reads } from "@/lib/query-keys";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/errors";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import type { Answers, Step } from "./answers";
import { submitRequest } from "./api";
import type { SentRequest } from "./storage";
import { isChangedMeanwhile, isDraftGone, type AnswersState } from "./use-answers";
import type { DocumentsState } from "./use-documents";

export interface Complaint {
  field: string;
  message: string;
  step: Step;
}

const stepOf: Record<string, Step> = {
  category_id: "category",
  nonprofits: "nonprofits",
  first_name: "info",
  last_name: "info",
  email: "info",
  phone: "info",
  address: "info",
  city: "info",
  state: "info",
  postal_code: "info",
  description: "details",
  amount: "details",
  contact_consent: "review",
};

/** The server's errors for single answers. */
export const complaintsOf = (error: unknown): Complaint[] =>
  Object.entries(fieldErrors(error)).map(([field, message]) => ({ field, message, step: stepOf[field] ?? "review" }));

/** The draft was deleted elsewhere, with the documents that were in it. */
class DocumentsGone extends Error {
  override name = "DocumentsGone";
}

/** The proof of the address, which is good for an hour, is over. The request can be sent without the account, or after another. */
export const isProofOver = (error: unknown): boolean => errorHint(error) === "account_mismatch";

/** One sentence about a request that could not be sent. */
export const whyNotSent = (error: unknown): string =>
  error instanceof DocumentsGone
    ? t("unsent.documentsGone")
    : isProofOver(error)
      ? t("unsent.proofOverBody")
      : errorMessage(error, "requestForm.submitFailed");

export interface UseSubmit {
  signedIn: boolean;
  seen: AnswersState["seen"];
  meet: AnswersState["meet"];
  /** Continues without a draft that was deleted. */
  leaveDraft: (draftId: string) => void;
  /** Whether the answers are still these. */
  isCurrent: (answers: Answers) => boolean;
  /** Called when the tried answers start or stop waiting for a connection. */
  onWaits: (waits: boolean, tried: Answers) => void;
  stopWaiting: AnswersState["stopWaiting"];
  onSent: (sent: SentRequest) => void;
  /** The address has to be proved again before the request can be in the account. */
  onProofOver: () => void;
}

export interface Sending {
  answers: Answers;
  /** By the form's own button, not by itself or from the notice about waiting. */
  pressed?: boolean;
}

/** Tries that did not reach the server: when the last one was, and how many were presses of the form's button. */
export interface Missed {
  at: number | null;
  presses: number;
}

export function useSubmit({
  signedIn,
  seen,
  meet,
  leaveDraft,
  isCurrent,
  onWaits,
  stopWaiting,
  onSent,
  onProofOver,
}: UseSubmit) {
  const queryClient = useQueryClient();
  const [missed, setMissed] = useState<Missed>({ at: null, presses: 0 });
  const submit = useMutation({
    mutationFn: async ({ answers }: Sending) => {
      try {
        return await submitRequest(answers, signedIn, seen());
      } catch (error) {
        const { draftId } = answers;
        if (!signedIn || draftId === null) throw error;
        if (isChangedMeanwhile(error) && (await meet(draftId))) {
          return await submitRequest(answers, signedIn, seen()).catch(async (again: unknown) => {
            // saved elsewhere once more
            if (isChangedMeanwhile(again)) await meet(draftId);
            throw again;
          });
        }
        if (!isDraftGone(error)) throw error;
        leaveDraft(draftId);
        // never without documents that the person saw
        if (answers.documents.some(({ slot }) => !slot)) throw new DocumentsGone();
        return await submitRequest({ ...answers, draftId: null }, signedIn, null);
      }
    },
    onSuccess: (result, { answers }) => {
      toast({
        title: t("requestForm.sentTitle"),
        description: t(isCurrent(answers) ? "requestForm.sentToastBody" : "unsent.sentBeforeChange", {
          id: result.request_number,
        }),
      });
      void queryClient.invalidateQueries({ queryKey: reads.myRequests });
      onSent({
        number: result.request_number,
        email: result.email,
        nonprofits: answers.nonprofits.map(({ name }) => name),
        at: result.submitted_at,
        ...(!signedIn && answers.account ? { account: answers.account.fullName || answers.account.email } : {}),
      });
    },
    onError: (error, { answers, pressed }) => {
      const unreachable = isNetworkError(error);
      // the person has to choose a version first
      if (isChangedMeanwhile(error)) stopWaiting();
      else onWaits(unreachable, answers);
      if (unreachable) setMissed(({ presses }) => ({ at: Date.now(), presses: presses + (pressed ? 1 : 0) }));
      if (isProofOver(error)) return onProofOver();
      // told in the page, the first by `WaitingToSend`
      if (unreachable || complaintsOf(error).length > 0 || isSessionExpired(error)) return;
      // told by `leaveDraft`, and by `ChangedElsewhere`
      if (error instanceof DocumentsGone || isChangedMeanwhile(error)) return;
      toast({
        variant: "destructive",
        title: t("requestForm.submitErrorTitle"),
        description: whyNotSent(error),
      });
    },
  });
  return { ...submit, missed };
}

export type Submit = ReturnType<typeof useSubmit>;

/** Says why a request cannot be sent before its documents have arrived. Returns whether it can. */
export function documentsArrived({ busy, failed }: Pick<DocumentsState, "busy" | "failed">): boolean {
  if (busy) toast({ variant: "info", title: t("requestForm.documentsBusy") });
  else if (failed) toast({ variant: "destructive", title: t("requestForm.documentsFailed") });
  return !busy && !failed;
}

const TRY_AGAIN_MS = 20_000;

/**
 * Sends waiting answers: when the page opens online, when the connection returns, and periodically, because browsers
 * may report a connection that does not work. On iOS nothing is sent while the page is closed. The same key gives the
 * same request.
 */
export function useSendWaiting({ waits, busy, send }: { waits: boolean; busy: boolean; send: () => void }): void {
  const go = useEffectEvent(() => {
    if (navigator.onLine && !busy) send();
  });
  const opened = useEffectEvent(() => {
    if (waits) go();
  });
  useEffect(() => opened(), []);
  useEffect(() => {
    if (!waits) return;
    const timer = setInterval(() => go(), TRY_AGAIN_MS);
    const back = () => go();
    window.addEventListener("online", back);
    return () => {
      clearInterval(timer);
      window.removeEventListener("online", back);
    };
  }, [waits]);
}
