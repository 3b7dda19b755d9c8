import { QueryClientProvider, usePrefetchQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef, useState, type ReactElement } from "react";
import { Link, useLocation, useSearchParams } from "react-router-dom";
import { loginThen, paths } from "@/app/paths";
import { ExitPage } from "@/components/exit-page";
import { FormPage } from "@/components/pages";
import { FailedState, LoadingView } from "@/components/states";
import { Button } from "@/components/ui/button";
import { keepShell } from "@/lib/offline-shell";
import { useSession } from "@/lib/session";
import { queryClient } from "@/lib/query-client";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import type { Chosen } from "../answers";
import { draftQuery, lastIdentityQuery } from "../api";
import { adopt, guestAnswers, leaveToGuest } from "../guest-answers";
import { begunWith, keptAfterDraft, keptOfDraft, startFromDraft, startHere } from "../start";
import type { Kept, Slot } from "../storage";
import { useAnswers } from "../use-answers";
import { showFromTop } from "./frame";
import { SinglePageForm } from "./single-page";
import { Wizard } from "./wizard";

export interface WholeFormProps {
  /** The choice made at the first question while this was loading. */
  begun?: Chosen;
}

/**
 * The whole request form, after the first question for new visitors (`first-question.tsx`). It stays
 * unchanged if the session ends, because the owner of the answers is decided on arrival.
 */
export function WholeForm(props: WholeFormProps) {
  useEffect(keepShell, []);
  return (
    <QueryClientProvider client={queryClient}>
      <Settled {...props} />
    </QueryClientProvider>
  );
}

function Settled({ begun }: WholeFormProps) {
  const { status, user, ended } = useSession();
  const [params] = useSearchParams();
  const draftId = params.get("draft");
  const [owner, setOwner] = useState<string | null | undefined>(undefined);
  const settled = status === "signed-in" || status === "signed-out";
  const left = ended === "choice" && user === null;
  const now = user ? user.id : owner === undefined || left ? null : owner;
  if (settled && now !== owner) setOwner(now);

  // another request in the place of a draft
  const before = useRef(draftId);
  useLayoutEffect(() => {
    if (before.current === draftId) return;
    before.current = draftId;
    showFromTop();
  }, [draftId]);

  if (owner === undefined) return status === "failed" ? <Failed /> : <LoadingView />;
  const key = `${owner ?? "guest"}:${draftId ?? "new"}`;
  if (draftId !== null && owner === null) return <SignInFirst />;
  return draftId !== null && owner !== null ? (
    <FromDraft key={key} userId={owner} draftId={draftId} />
  ) : (
    <FromHere key={key} userId={owner} begun={begun} />
  );
}

function Failed() {
  const { error, refresh } = useSession();
  return (
    <FormPage title={t("requestForm.title")} heading={t("requestForm.title")}>
      <FailedState error={error} onRetry={() => void refresh()} />
    </FormPage>
  );
}

/** Why a draft cannot be shown, how to get to it, and how to start without it. */
function OrStartNew({ title, lead, children }: { title: string; lead: string; children: ReactElement }) {
  return (
    <FormPage title={title} lead={lead}>
      <div className="actions">
        <Button asChild variant="primary">
          {children}
        </Button>
        <Button asChild>
          <Link to={paths.submitRequest}>{t("requestForm.startNew")}</Link>
        </Button>
      </div>
    </FormPage>
  );
}

function SignInFirst() {
  const { pathname, search } = useLocation();
  return (
    <OrStartNew title={t("requestForm.draftSignInTitle")} lead={t("requestForm.draftSignInBody")}>
      <Link to={loginThen(pathname + search)}>{t("requestForm.signIn")}</Link>
    </OrStartNew>
  );
}

function FromHere({ userId, begun }: { userId: string | null } & WholeFormProps) {
  const [params] = useSearchParams();
  const { user, selectedNonprofit } = useSession();
  const startWith = (adopted: Kept | null) => {
    const start = adopted ?? startHere(userId, params.get("form") === "single" ? "single" : "wizard");
    return begun ? begunWith(start, begun, selectedNonprofit) : start;
  };
  const [guest] = useState(() => (user && user.id === userId ? guestAnswers(user) : null));
  const [initial, setInitial] = useState(() => {
    if (guest && userId !== null) return guest.theirs ? startWith(adopt(userId, guest.kept)) : null;
    return startWith(null);
  });
  const [slot] = useState<Slot>({ userId, draftId: null });
  const asked = useRef(initial === null);
  useLayoutEffect(() => {
    if (!initial || !asked.current) return;
    asked.current = false;
    showFromTop();
  }, [initial]);
  if (initial) return <Asked slot={slot} initial={initial} />;
  return (
    <IsItYours
      onYes={() => {
        if (guest && userId !== null) setInitial(startWith(adopt(userId, guest.kept)));
      }}
      onNo={() => {
        if (guest && userId !== null) leaveToGuest(userId, guest.kept);
        setInitial(startWith(null));
      }}
    />
  );
}

/** A guest's answers name another address. They are not shown, because they may be another person's. */
function IsItYours({ onYes, onNo }: { onYes: () => void; onNo: () => void }) {
  return (
    <FormPage
      className="wiz"
      title={t("requestForm.title")}
      heading={t("unsent.guestTitle")}
      lead={t("unsent.guestBody")}
      back={
        <div className="wiz-top">
          <span className="kicker">{t("requestForm.title")}</span>
          <ExitPage />
        </div>
      }
    >
      <div className="actions">
        <Button onClick={onYes}>{t("unsent.guestYes")}</Button>
        <Button onClick={onNo}>{t("unsent.guestNo")}</Button>
      </div>
    </FormPage>
  );
}

function FromDraft({ userId, draftId }: { userId: string; draftId: string }) {
  const [slot] = useState<Slot>({ userId, draftId });
  const [initial, setInitial] = useState<Kept | null>(null);
  const query = useQuery({ ...draftQuery(draftId), enabled: initial === null });
  // The wizard needs it after the draft, so both load in parallel.
  usePrefetchQuery(lastIdentityQuery(userId));
  const { data } = query;
  const after = data === null ? keptAfterDraft(userId, draftId) : null;
  if (initial === null && data) setInitial(startFromDraft(keptOfDraft(userId, draftId), data));
  // the draft was just sent, and the page is reloaded
  if (initial === null && after) setInitial(after);
  useEffect(() => {
    if (data && data.gone > 0) toast({ variant: "info", title: t("requestForm.goneNonprofits", { count: data.gone }) });
  }, [data]);

  if (initial) return <Asked slot={slot} initial={initial} />;
  if (query.isPending) return <LoadingView />;
  if (query.isError) {
    return (
      <FormPage title={t("requestForm.title")}>
        <FailedState error={query.error} title={t("requestForm.failedTitle")} onRetry={() => void query.refetch()} />
      </FormPage>
    );
  }
  return (
    <OrStartNew title={t("requestForm.draftNotFoundTitle")} lead={t("requestForm.draftNotFoundBody")}>
      <Link to={paths.requestDrafts}>{t("requestForm.allDrafts")}</Link>
    </OrStartNew>
  );
}

function Asked({ slot, initial }: { slot: Slot; initial: Kept }) {
  const { user, ended } = useSession();
  const [params] = useSearchParams();
  const expired = slot.userId !== null && user === null && ended !== "choice";
  useEffect(() => {
    // offline errors use toasts, so load the toast region before the connection drops
    void import("@/components/ui/toaster").catch(() => undefined);
  }, []);
  const state = useAnswers(slot, initial, slot.userId !== null && !expired);
  const asked = params.get("form");
  const form = asked === "single" || asked === "wizard" ? asked : state.answers.form;
  const { fill } = state;
  const blankForm = state.answers.form;
  useEffect(() => {
    if (form !== blankForm) fill({ form });
  }, [form, blankForm, fill]);
  const Screen = form === "single" ? SinglePageForm : Wizard;
  return <Screen state={state} user={user} expired={expired} />;
}
