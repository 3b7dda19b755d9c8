import { useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useLocation, useNavigate, useSearchParams } from "react-router-dom";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { errorMessage } from "@/lib/errors";
import { formatList } from "@/lib/format";
import { useSession, type AppUser } from "@/lib/session";
import { helpKindsQuery } from "@/lib/help-kinds-query";
import { localName } from "@/lib/local-name";
import { toast } from "@/lib/toast";
import { t, type MessageKey } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import { identify, isBlank, showsSent, withCategory, type Answers, type Step } from "../answers";
import { allowedStep, furthestStep, isAnswered } from "../progress";
import { lastIdentityQuery } from "../api";
import type { Identity } from "../schema";
import { isChangedMeanwhile, type AnswersState } from "../use-answers";
import { useDocuments } from "../use-documents";
import { documentsArrived, isProofOver, useSendWaiting, useSubmit } from "../use-submit";
import { CategoryStep, CategoryTail } from "./category-step";
import { ChangedElsewhere } from "./changed-elsewhere";
import { DetailsStep } from "./details-step";
import { Frame, showFromTop, showSessionEnd } from "./frame";
import { InfoStep } from "./info-step";
import { NonprofitsStep } from "./nonprofits-step";
import { ReviewStep } from "./review-step";
import { SentStep } from "./sent-step";
import { WaitingToSend } from "./waiting-to-send";

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

/** Fills the identity from the session and the last request, below typed values. */
function withKnown(identity: Identity, user: AppUser | null, last: Identity | null | undefined): Identity {
  if (!user) return identity;
  const known = identify(identity, user);
  if (!last || known.address || known.city) return known;
  const { address, city, state, postalCode } = last;
  return { ...known, address, city, state, postalCode, phone: known.phone || last.phone };
}

/** 'Portland, ME', as far as it is known. */
export const placeOf = ({ city, state }: Pick<Identity, "city" | "state">): string =>
  [city, state]
    .map((part) => part.trim())
    .filter(Boolean)
    .join(", ");

/** Identifies a signed-in person from the session, and spares them typing a known address again. */
export function useIdentified(user: AppUser | null, answers: Answers, fill: AnswersState["fill"]) {
  const last = useQuery({ ...lastIdentityQuery(user?.id ?? ""), enabled: user !== null });
  const { key } = answers;
  const identity = withKnown(answers.identity, user, last.data);
  // Whose answers hold what is known, and which: fields that are shown earlier would stay empty.
  const [filled, setFilled] = useState<string | null>(null);
  const whose = user && `${user.id} ${key}`;
  if (whose && filled !== whose && !last.isPending && JSON.stringify(identity) === JSON.stringify(answers.identity)) {
    setFilled(whose);
  }
  useEffect(() => {
    if (!user) return;
    fill((now) => {
      if (now.key !== key) return {};
      const identity = withKnown(now.identity, user, last.data);
      return {
        ...(JSON.stringify(identity) === JSON.stringify(now.identity) ? {} : { identity }),
        ...(now.texts === undefined && user.textConsent ? { texts: true } : {}),
      };
    });
    // once per person, server answer and request, not per keystroke
  }, [user, last.data, key, fill]);
  return {
    identifying: user !== null && filled !== whose && answers.identity.address === "",
    /** The answers as they are once the effect above has run. */
    identified: { ...answers, identity },
  };
}

/** The five steps at /submit-request and /request-submission. The step lives in the address, the answers in `state`. */
export function Wizard({ state, user, expired }: FormProps) {
  const { answers, sent, saving, change, save, finish, clear } = state;
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [params] = useSearchParams();
  // the identity is known, so the step need not be shown
  const { identifying, identified } = useIdentified(user, answers, state.fill);
  // A saved draft opens where it was left. This is decided once: a step that advanced as soon as its last answer became
  // valid would interrupt typing.
  const [arrival, setArrival] = useState<Step | null>(null);
  if (arrival === null && !identifying) setArrival(furthestStep(identified));
  const inDraft = sent ? "sent" : (arrival ?? furthestStep(answers));
  const wanted = params.get("step") ?? (params.has("draft") ? inDraft : null);
  const step: Step = showsSent(wanted, sent, answers)
    ? "sent"
    : allowedStep(wanted === "sent" ? null : wanted, answers);
  const signedIn = user !== null;
  const kinds = useQuery({ ...helpKindsQuery, enabled: step === "category" });
  const { selectedNonprofit } = useSession();

  const hrefOf = useCallback(
    (target: Step) => {
      const next = new URLSearchParams(params);
      next.set("step", target);
      return `${pathname}?${next}`;
    },
    [params, pathname],
  );
  // a second tap on 'Continue' must not add a history entry
  const go = (target: Step, replace = false) =>
    void navigate(hrefOf(target), {
      replace: replace || new URLSearchParams(window.location.search).get("step") === target,
    });

  // The saved draft stays in the account, so its address must not show empty answers.
  const startOver = () => {
    const next = new URLSearchParams(params);
    next.delete("draft");
    next.set("step", "category");
    void navigate(`${pathname}?${next}`);
  };

  const known = signedIn && !identifying && isAnswered(answers, "info");
  const documents = useDocuments({ answers, change, signedIn, save, onAdd: state.stopWaiting });
  const submit = useSubmit({
    signedIn,
    seen: state.seen,
    meet: state.meet,
    leaveDraft: state.leaveDraft,
    isCurrent: state.isCurrent,
    onWaits: state.setWaits,
    stopWaiting: state.stopWaiting,
    onSent: (request) => {
      finish(request);
      go("sent", true);
    },
    onProofOver: () => {
      change({ account: null });
      go("info");
    },
  });
  const proofOver = isProofOver(submit.error);
  const sendNow = () => submit.mutate({ answers });
  const waits = state.waits && !expired;
  const stopped = state.stopped && !expired;
  useSendWaiting({ waits, busy: submit.isPending || documents.busy || documents.failed, send: sendNow });
  const onIdentity = useCallback(
    (identity: Partial<Answers["identity"]>) => change((now) => ({ identity: { ...now.identity, ...identity } })),
    [change],
  );
  const onDetails = useCallback(
    (details: Partial<Pick<Answers, "description" | "amount">>) => change(details),
    [change],
  );

  const choose = (which: "mine" | "theirs") => {
    // the button that was pressed goes away
    showFromTop();
    state.settle(which);
    submit.reset();
  };
  /** Another version of the answers has other fields. */
  const fields = `fields ${state.version}`;

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
    <Frame
      {...frame}
      notice={
        state.meanwhile && !expired ? (
          <ChangedElsewhere
            theirs={state.meanwhile}
            answers={answers}
            onChoose={choose}
            shown={isChangedMeanwhile(submit.error) ? submit.error : null}
          />
        ) : waits || stopped ? (
          <WaitingToSend
            submit={submit}
            stopped={stopped}
            onSend={() => {
              if (documentsArrived(documents)) sendNow();
            }}
            onStop={() => state.setWaits(false)}
          />
        ) : undefined
      }
    >
      {step === "category" ? (
        <>
          {wanted === null ? (
            <Unfinished answers={answers} onContinue={() => go(furthestStep(answers))} onNew={clear} />
          ) : null}
          <CategoryStep
            kinds={kinds}
            chosenId={answers.category?.id ?? null}
            onChoose={({ id, name }) => {
              change((now) => withCategory(now, { id, name }, selectedNonprofit));
              go("nonprofits");
            }}
          />
          <CategoryTail />
        </>
      ) : step === "nonprofits" ? (
        <NonprofitsStep
          need={answers.category}
          place={placeOf(answers.identity)}
          chosen={answers.nonprofits}
          onChange={(nonprofits) => change({ nonprofits })}
          onContinue={() => go(known ? "details" : "info")}
        />
      ) : step === "info" ? (
        identifying || (user !== null && answers.identity.email !== user.email) ? null : (
          <InfoStep
            key={fields}
            answers={answers}
            accountEmail={user?.email ?? (expired ? answers.identity.email : null)}
            expired={expired}
            proofOver={proofOver}
            withoutHref={hrefOf("review")}
            onIdentity={onIdentity}
            onTexts={(texts) => change({ texts })}
            onAccount={(account) => {
              change({ account });
              if (proofOver) submit.reset();
            }}
            onContinue={() => go("details")}
          />
        )
      ) : step === "details" ? (
        <DetailsStep
          key={fields}
          answers={answers}
          documents={documents}
          onDetails={onDetails}
          onContinue={() => go("review")}
        />
      ) : (
        <ReviewStep
          key={fields}
          answers={answers}
          hrefOf={hrefOf}
          onConsent={(consent) => change({ consent })}
          onSubmit={() => {
            if (expired) showSessionEnd();
            else if (documentsArrived(documents)) submit.mutate({ answers, pressed: true });
          }}
          onRenew={() => {
            state.renew();
            submit.reset();
          }}
          busy={submit.isPending}
          error={waits || stopped || state.meanwhile || proofOver ? null : submit.error}
        />
      )}
      {step === "category" ? null : <Keep state={state} signedIn={signedIn} onCleared={startOver} />}
    </Frame>
  );
}

/** Shown on a new visit with unsent answers. */
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
  const what = [
    answers.category && localName(answers.category.name),
    ...answers.nonprofits.map(({ name }) => name),
  ].filter((name): name is string => Boolean(name));
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

/** 'Save draft' for an account; on a shared device, a way to leave nothing behind. */
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
    // its notice is at the top of the page, far above this button on a phone
    onError: (error) =>
      toast({
        variant: "destructive",
        title: t("requestForm.saveFailedTitle"),
        description: isChangedMeanwhile(error)
          ? t("unsent.meanwhileTitle")
          : t("requestForm.saveFailedBody", { reason: errorMessage(error) }),
      }),
  });
  return (
    <div className="wiz-tail row justify-between">
      {signedIn ? (
        <Button busy={save.isPending} onClick={() => save.mutate()}>
          {t("requestForm.saveDraft")}
        </Button>
      ) : (
        <div className="small" role="status">
          {state.tabOnly ? (
            t("requestForm.tabOnly")
          ) : (
            <>
              {t("requestForm.sharedDevice")}
              <button type="button" className="link block" onClick={state.keepInTab}>
                {t("requestForm.notMyPhone")}
              </button>
            </>
          )}
        </div>
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
