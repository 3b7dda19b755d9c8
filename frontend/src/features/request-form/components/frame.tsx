import { Check, CircleAlert, ShieldCheck } from "lucide-react";
import { useLayoutEffect, useRef, type ReactNode } from "react";
import { Link, useLocation } from "react-router-dom";
import { ExitPage } from "@/components/exit-page";
import { BackLink, FormPage } from "@/components/pages";
import { ProgressBridge } from "@/components/progress-bridge";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { errorMessage, isNetworkError, isSessionExpired } from "@/lib/errors";
import { formatTime } from "@/lib/format";
import { loginThen } from "@/app/paths";
import { useOnline } from "@/lib/use-online";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/styles/requests.css";
import { stepNumber, steps, type Step } from "../answers";
import type { Saving } from "../use-answers";

const names = () => [
  t("requestForm.stepCategory"),
  t("requestForm.stepNonprofits"),
  t("requestForm.stepInfo"),
  t("requestForm.stepDetails"),
  t("requestForm.stepSent"),
];

/** A quiet note on where the answers are saved. */
export function SaveState({ saving }: { saving: Saving }) {
  const words =
    saving.state === "saving"
      ? t("requestForm.saving")
      : saving.state === "account"
        ? t("requestForm.savedDraft", { time: formatTime(saving.at) })
        : saving.state === "browser"
          ? t("requestForm.savedBrowser")
          : null;
  if (saving.state === "failed") {
    return (
      <span className="saved bad" role="status">
        <CircleAlert aria-hidden="true" />
        {t("requestForm.savedBrowser")}
      </span>
    );
  }
  if (!words) {
    return (
      <span className="saved">
        <ShieldCheck aria-hidden="true" />
        {t("requestForm.private")}
      </span>
    );
  }
  return (
    <span className="saved" role="status">
      <Check aria-hidden="true" />
      {words}
    </span>
  );
}

const SESSION_END = "session-end";

/** Scrolls to the notice that sending needs a new sign-in. */
export function showSessionEnd(): void {
  const notice = document.getElementById(SESSION_END);
  notice?.scrollIntoView({ block: "center" });
  notice?.querySelector("a")?.focus({ preventScroll: true });
}

/** Notices about the answers: offline, signed out, not saved. In none of these cases is anything lost. */
export function SaveNotices({ saving, expired }: { saving: Saving; expired: boolean }) {
  const online = useOnline();
  const { pathname, search } = useLocation();
  const failure = saving.state === "failed" ? saving.error : null;
  if (expired || (failure && isSessionExpired(failure))) {
    return (
      <Notice id={SESSION_END} tone="warn" role="alert" className="mb-6" title={t("requestForm.expiredTitle")}>
        <p>{t("requestForm.expiredBody")}</p>
        <Button asChild className="mt-3">
          <Link to={loginThen(pathname + search)}>{t("requestForm.signInAgain")}</Link>
        </Button>
      </Notice>
    );
  }
  if (!online || (failure && isNetworkError(failure))) {
    return (
      <Notice tone="info" role="status" className="mb-6" title={t("requestForm.offlineTitle")}>
        {t("requestForm.offlineBody")}
      </Notice>
    );
  }
  if (failure) {
    return (
      <Notice tone="bad" role="alert" className="mb-6" title={t("requestForm.saveFailedTitle")}>
        {t("requestForm.saveFailedBody", { reason: errorMessage(failure) })}
      </Notice>
    );
  }
  return null;
}

export interface FrameProps {
  step: Step;
  title: string;
  lead?: ReactNode;
  saving: Saving;
  expired: boolean;
  /** Address of a step that is reached; undefined where there is nothing to go back to. */
  hrefOf: (step: Step) => string;
  /** Replaces the note about saving. */
  notice?: ReactNode;
  children: ReactNode;
}

/** Shows the page from its top and gives it the focus, for a new question in the place of the last one. */
export function showFromTop(): void {
  window.scrollTo({ top: 0 });
  document.getElementById("main")?.focus({ preventScroll: true });
}

/**
 * The wizard's page: back and saved state, the bridge, the question. A new step takes the focus when it is shown; later
 * it would interrupt typing.
 */
export function Frame({ step, title, lead, saving, expired, hrefOf, notice, children }: FrameProps) {
  const before = useRef(step);
  useLayoutEffect(() => {
    if (before.current === step) return;
    before.current = step;
    showFromTop();
  }, [step]);

  const number = stepNumber[step];
  const previous = step === "sent" ? undefined : steps[steps.indexOf(step) - 1];
  const reached: Step[] = ["category", "nonprofits", "info", "details"];
  return (
    <FormPage
      className="wiz"
      title={title}
      lead={lead}
      back={
        <div className="wiz-top">
          {previous ? <BackLink to={hrefOf(previous)} /> : <span className="kicker">{t("requestForm.title")}</span>}
          <span className="row">
            {step === "sent" ? null : <SaveState saving={saving} />}
            <ExitPage />
          </span>
        </div>
      }
      progress={
        <div className="pt-1 pb-2">
          <ProgressBridge
            label={t("requestForm.progressLabel")}
            steps={names()}
            step={step === "sent" ? 6 : number}
            links={
              step === "sent"
                ? undefined
                : reached.map((name) => (stepNumber[name] < number ? hrefOf(name) : undefined))
            }
          />
          {step === "sent" ? null : (
            <p className="saved-line">
              <SaveState saving={saving} />
            </p>
          )}
        </div>
      }
    >
      {step === "sent" ? null : (notice ?? <SaveNotices saving={saving} expired={expired} />)}
      {children}
    </FormPage>
  );
}
