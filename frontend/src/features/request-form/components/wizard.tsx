import { useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { Link, useLocation, useNavigate, useSearchParams } from "react-router-dom";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { errorMessage } from "@/lib/errors";
import { formatList } from "@/lib/format";
import type { AppUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t, type MessageKey } from "@/messages";
import "@/messages/en/requestForm";
import { allowedStep, furthestStep, identify, isBlank, showsSent, type Answers, type Step } from "../answers";
import { lastIdentityQuery } from "../api";
import type { AnswersState } from "../use-answers";
import { useDocuments } from "../use-documents";
import { useSubmit } from "../use-submit";
import { CategoryStep } from "./category-step";
import { DetailsStep } from "./details-step";
import { Frame, showSessionEnd } from "./frame";
import { InfoStep } from "./info-step";
import { NonprofitsStep } from "./nonprofits-step";
import { ReviewStep } from "./review-step";
import { SentStep } from "./sent-step";

const titles: Record<Step, { title: MessageKey; lead?: MessageKey }> = {
  category: { title: "requestForm.categoryTitle", lead: "requestForm.categoryLead" },
  nonprofits: { title: "requestForm.nonprofitsTitle", lead: "requestForm.nonprofitsLead" },
  info: { title: "requestForm.infoTitle", lead: "requestForm.infoLead" },
  details: { title: "requestForm.detailsTitle", lead: "requestForm.detailsLead" },
  review: { title: "requestForm.reviewTitle", lead: "requestForm.reviewLead" },
  sent: { title: "requestForm.sentTitle" },
};

export interface FormProps {
  state: AnswersState;
  /** Null when signed out. */
  user: AppUser | null;
  /** The session ended while the answers of an account were open. */
  expired: boolean;
}

/** Identifies a signed-in person from the session, and spares them typing a known address again. */
export function useIdentified(user: AppUser | null, answers: Answers, change: AnswersState["change"]) {
  const last = useQuery({ ...lastIdentityQuery(user?.id ?? ""), enabled: user !== null });
  useEffect(() => {
    if (!user) return;
    change((now) => {
      const known = last.data;
      const identity = identify(now.identity, user);
      if (known && !identity.address && !identity.city) {
        Object.assign(identity, {
          address: known.address,
          city: known.city,
          state: known.state,
          postalCode: known.postalCode,
        });
        identity.phone ||= known.phone;
      }
      return { identity };
    });
    // once per person and per answer of the server, not per keystroke
  }, [user, last.data, change]);
  return last.isPending && user !== null && answers.identity.address === "";
}

/** The five steps at /submit-request and /request-submission. The step lives in the address, the answers in `state`. */
export function Wizard({ state, user, expired }: FormProps) {
  const { answers, sent, saving, change, save, finish, clear } = state;
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [params] = useSearchParams();
  const wanted = params.get("step");
  const step: Step = showsSent(wanted, sent, answers)
    ? "sent"
    : allowedStep(wanted === "sent" ? null : wanted, answers);
  const signedIn = user !== null;

  const hrefOf = useCallback(
    (target: Step) => {
      const next = new URLSearchParams(params);
      next.set("step", target);
      return `${pathname}?${next}`;
    },
    [params, pathname],
  );
  // a second tap on 'Continue' is no second step back
  const go = (target: Step, replace = false) =>
    void navigate(hrefOf(target), {
      replace: replace || new URLSearchParams(window.location.search).get("step") === target,
    });

  const documents = useDocuments({ answers, change, signedIn, save });
  const submit = useSubmit({
    signedIn,
    onSent: (request) => {
      finish(request);
      go("sent", true);
    },
  });
  const onIdentity = useCallback(
    (identity: Partial<Answers["identity"]>) => change((now) => ({ identity: { ...now.identity, ...identity } })),
    [change],
  );
  const onDetails = useCallback(
    (details: Partial<Pick<Answers, "description" | "amount">>) => change(details),
    [change],
  );

  const { title, lead } = titles[step];
  const frame = { step, title: t(title), lead: lead ? t(lead) : undefined, saving, expired, hrefOf };

  if (step === "sent" && sent) {
    return (
      <Frame {...frame}>
        <SentStep sent={sent} signedIn={signedIn} />
      </Frame>
    );
  }
  return (
    <Frame {...frame}>
      {step === "category" ? (
        <>
          {wanted === null ? (
            <Unfinished answers={answers} onContinue={() => go(furthestStep(answers))} onNew={clear} />
          ) : null}
          <CategoryStep
            chosenId={answers.category?.id ?? null}
            onChoose={({ id, name }) => {
              change({ category: { id, name } });
              go("nonprofits");
            }}
          />
          <div className="wiz-tail">
            <p>{t("requestForm.categoryHelp")}</p>
            <p className="mt-3">
              <Link to={`${pathname}?${formParams(params, "single")}`}>{t("requestForm.onePage")}</Link>{" "}
              {t("requestForm.onePageBody")}
            </p>
          </div>
        </>
      ) : step === "nonprofits" ? (
        <NonprofitsStep
          chosen={answers.nonprofits}
          onChange={(nonprofits) => change({ nonprofits })}
          onContinue={() => go("info")}
        />
      ) : step === "info" ? (
        <InfoStepGate user={user} answers={answers} change={change}>
          <InfoStep
            answers={answers}
            accountEmail={user?.email ?? (expired ? answers.identity.email : null)}
            expired={expired}
            onIdentity={onIdentity}
            onAccount={(account) => change({ account })}
            onContinue={() => go("details")}
          />
        </InfoStepGate>
      ) : step === "details" ? (
        <DetailsStep answers={answers} documents={documents} onDetails={onDetails} onContinue={() => go("review")} />
      ) : (
        <ReviewStep
          answers={answers}
          hrefOf={hrefOf}
          onConsent={(consent) => change({ consent })}
          onSubmit={() => {
            if (expired) showSessionEnd();
            else submit.mutate(answers);
          }}
          busy={submit.isPending}
          error={submit.error}
        />
      )}
      {step === "category" ? null : <Keep state={state} signedIn={signedIn} onCleared={() => go("category")} />}
    </Frame>
  );
}

/** The form of the identity opens once it is filled in from the session. */
function InfoStepGate({
  user,
  answers,
  change,
  children,
}: {
  user: AppUser | null;
  answers: Answers;
  change: AnswersState["change"];
  children: React.ReactNode;
}) {
  const waiting = useIdentified(user, answers, change);
  const identified = user === null || answers.identity.email === user.email;
  return waiting || !identified ? null : children;
}

/** The other form at the same address; the answers come along. */
export function formParams(params: URLSearchParams, form: "single" | "wizard"): URLSearchParams {
  const next = new URLSearchParams(params);
  next.set("form", form);
  next.delete("step");
  return next;
}

/** Arriving anew with answers that were never sent. */
export function Unfinished({
  answers,
  onContinue,
  onNew,
}: {
  answers: Answers;
  onContinue: () => void;
  onNew: () => void;
}) {
  const blank = useMemo(() => isBlank(answers), [answers]);
  const [shown, setShown] = useState(!blank);
  if (!shown || blank) return null;
  const what = [answers.category?.name, ...answers.nonprofits.map(({ name }) => name)].filter((name): name is string =>
    Boolean(name),
  );
  return (
    <Notice tone="info" className="mb-6" title={t("requestForm.continueTitle")}>
      <p>
        {t("requestForm.continueBody", { what: what.length > 0 ? formatList(what) : t("requestForm.continueNothing") })}
      </p>
      <div className="actions mt-3">
        <Button variant="primary" onClick={onContinue}>
          {t("requestForm.continueButton")}
        </Button>
        <Button
          onClick={() => {
            onNew();
            setShown(false);
          }}
        >
          {t("requestForm.startNew")}
        </Button>
      </div>
    </Notice>
  );
}

/** 'Save draft' for an account; for a shared device, the way to leave nothing behind. */
export function Keep({
  state,
  signedIn,
  onCleared,
}: {
  state: AnswersState;
  signedIn: boolean;
  onCleared: () => void;
}) {
  const [asking, setAsking] = useState(false);
  const save = useMutation({
    mutationFn: state.save,
    onSuccess: () =>
      toast({ title: t("requestForm.draftSavedToast"), description: t("requestForm.draftSavedToastBody") }),
    // the notice on it stands at the head of the page, far above this button on a phone
    onError: (error) =>
      toast({
        variant: "destructive",
        title: t("requestForm.saveFailedTitle"),
        description: t("requestForm.saveFailedBody", { reason: errorMessage(error) }),
      }),
  });
  return (
    <div className="wiz-tail row justify-between">
      {signedIn ? (
        <Button busy={save.isPending} onClick={() => save.mutate()}>
          {t("requestForm.saveDraft")}
        </Button>
      ) : (
        <p className="small">{t("requestForm.sharedDevice")}</p>
      )}
      <Button variant="quiet" className="edge" onClick={() => setAsking(true)}>
        {t("requestForm.startOver")}
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t("requestForm.startOverTitle")}
        description={t(
          signedIn && state.answers.draftId ? "requestForm.startOverDraftBody" : "requestForm.startOverBody",
        )}
        confirmLabel={t("requestForm.startOver")}
        onConfirm={() => {
          setAsking(false);
          state.clear();
          onCleared();
        }}
      />
    </div>
  );
}
