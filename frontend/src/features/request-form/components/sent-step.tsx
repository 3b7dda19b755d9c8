import { Printer, Share2 } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router-dom";
import { SentArt } from "@/components/art/sent";
import { CopyButton } from "@/components/copy-button";
import { Timeline } from "@/components/timeline";
import { Button } from "@/components/ui/button";
import { Words } from "@/components/words";
import { formatDateTime, formatList, formatLongDate } from "@/lib/format";
import { loginThen, paths } from "@/app/paths";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import { firstAnswerBy } from "@/lib/dates";
import type { SentRequest } from "../storage";

const statusOf = (number: string) => `${paths.requestStatusLookup}?id=${encodeURIComponent(number)}`;

/** Shares the number and the link to its status with another app. Cancelling is not an error. */
const share = (number: string) =>
  navigator
    .share({
      text: t("requestForm.shareText", { number }),
      url: new URL(statusOf(number), window.location.origin).href,
    })
    .catch(() => undefined);

/** Step 5: the number, large, and what happens next. */
export function SentStep({ sent, signedIn }: { sent: SentRequest; signedIn: boolean }) {
  const [mayShare] = useState(() => typeof navigator.share === "function");
  // whoever has no account goes on by code; the dashboard would ask them to sign in
  const byCode = !signedIn && !sent.account;
  return (
    <>
      <SentArt
        className="-mt-2 mb-4 w-60"
        role="img"
        aria-hidden={undefined}
        aria-label={t("requestForm.sentPicture")}
      />
      <div className="ticket" role="group" aria-label={t("requestForm.yourNumber")}>
        <div>
          <p className="text-ui text-soft">{t("requestForm.yourNumber")}</p>
          <p className="no num" data-testid="request-number">
            {sent.number}
          </p>
        </div>
        <span className="row">
          <CopyButton value={sent.number} label={t("requestForm.copyNumber")} />
          <Button variant="quiet" className="no-print" onClick={() => window.print()}>
            <Printer aria-hidden="true" />
            {t("requestForm.print")}
          </Button>
          {mayShare ? (
            <Button variant="quiet" className="no-print" onClick={() => void share(sent.number)}>
              <Share2 aria-hidden="true" />
              {t("requestForm.share")}
            </Button>
          ) : null}
        </span>
      </div>
      <p className="mt-4">
        <Words k="requestForm.sentMail" parts={{ email: <strong key="email">{sent.email}</strong> }} />
      </p>
      <h2 className="mt-10 mb-5 text-xl">{t("requestForm.nextTitle")}</h2>
      <Timeline
        label={t("requestForm.nextTitle")}
        steps={[
          { title: t("requestForm.timelineSubmitted"), state: "complete", when: formatDateTime(sent.at) },
          {
            title: t("requestForm.timelineReview"),
            state: "current",
            body: t("requestForm.timelineReviewBody", {
              count: sent.nonprofits.length,
              names: formatList(sent.nonprofits),
              date: formatLongDate(firstAnswerBy(sent.at)),
            }),
          },
          { title: t("requestForm.timelineDecision"), state: "upcoming", body: t("requestForm.timelineDecisionBody") },
        ]}
      />
      {signedIn ? null : (
        <section className="wiz-tail">
          <h2 className="text-base text-ink">{t("requestForm.guestNextTitle")}</h2>
          <p className="mt-1 break-words">
            {sent.account
              ? t("requestForm.linkedNextBody", { name: sent.account })
              : t("requestForm.guestNextBody", { email: sent.email })}
          </p>
          <p className="row mt-3">
            {sent.account ? (
              <Link to={loginThen(paths.myRequests)}>{t("requestForm.signIn")}</Link>
            ) : (
              <Button asChild variant="primary">
                <Link to={paths.openRequestOf(sent.number)}>{t("requestForm.openWithCode")}</Link>
              </Button>
            )}
            <Link to={statusOf(sent.number)}>{t("requestForm.checkStatus")}</Link>
            {sent.account ? null : <Link to={paths.signup}>{t("requestForm.createAccount")}</Link>}
          </p>
        </section>
      )}
      <div className="actions mt-8">
        <Button asChild variant={byCode ? "plain" : "primary"}>
          <Link to={paths.requesterDashboard}>{t("requestForm.toDashboard")}</Link>
        </Button>
        <Button asChild>
          <Link to={paths.home}>{t("requestForm.returnHome")}</Link>
        </Button>
      </div>
    </>
  );
}
