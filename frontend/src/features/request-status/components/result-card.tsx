import type { ReactNode } from "react";
import { StatusBadge } from "@/components/status-badge";
import { Timeline, type TimelineStep } from "@/components/timeline";
import { decisionBy, firstAnswerBy, isOver, wordBy } from "@/lib/dates";
import { formatDate, formatLongDate, formatMoney } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/lookup";
import type { FoundStatus } from "../api";

/** One line: the decision, or who is working on it. */
function fact(found: FoundStatus): string {
  switch (found.status) {
    case "approved":
      return t("lookup.awarded", { amount: formatMoney(found.awarded ?? 0) });
    case "declined":
      return found.reason ? t("lookup.reason", { reason: localName(found.reason) }) : t("lookup.declined");
    case "in_review":
      return t("lookup.inReview");
    case "processing":
      return t("lookup.processing");
    case "withdrawn":
      return t("lookup.withdrawnFact");
    default:
      if (found.needs_more_proof) return t("lookup.waitsForYou");
      return t(found.review_started_at ? "lookup.pendingOpened" : "lookup.pending");
  }
}

export function stepsOf(found: FoundStatus, now = new Date()): TimelineStep[] {
  const { status } = found;
  const submitted: TimelineStep = {
    title: t("lookup.submitted"),
    state: "complete",
    when: formatDate(found.submitted_at),
  };
  const decided = found.decided_at ? formatDate(found.decided_at) : undefined;
  if (status === "withdrawn") {
    return [
      submitted,
      { title: t("lookup.withdrawn"), state: "complete", when: decided, body: t("lookup.withdrawnNext") },
    ];
  }
  const waiting = status === "pending" || status === "in_review";
  const done = status === "approved" || status === "declined";
  const by = firstAnswerBy(found.submitted_at);
  const decision = decisionBy(found.submitted_at);
  return [
    submitted,
    {
      title: t("lookup.underReview"),
      state: waiting ? "current" : "complete",
      when: found.review_started_at ? formatDate(found.review_started_at) : undefined,
      body:
        waiting && !found.needs_more_proof
          ? t(isOver(by, now) ? "lookup.reviewLate" : "lookup.reviewBy", { date: formatLongDate(by) })
          : undefined,
    },
    {
      title: t("lookup.decision"),
      state: done ? "complete" : "upcoming",
      when: done ? decided : undefined,
      body:
        status === "approved"
          ? approvedWords(found)
          : status === "declined"
            ? t("lookup.declinedNext")
            : found.needs_more_proof
              ? t("lookup.decisionAfterProof")
              : isOver(decision, now)
                ? t("lookup.decisionSoon")
                : t("lookup.decisionBy", { date: formatLongDate(decision) }),
    },
  ];
}

function approvedWords({ decided_at }: FoundStatus): string {
  if (!decided_at) return t("lookup.approvedNext");
  const by = wordBy(decided_at);
  return `${t("lookup.approvedNext")} ${t("lookup.approvedBy", { date: formatLongDate(by) })}`;
}

/** The result for a number. */
export function ResultCard({ found, foot }: { found: FoundStatus; foot?: ReactNode }) {
  return (
    <section className="panel result" aria-labelledby="result-number">
      <div className="top">
        <div>
          <p className="small text-soft">{t("lookup.yourRequest")}</p>
          <h2 id="result-number" className="num whitespace-nowrap">
            {found.request_number}
          </h2>
        </div>
        <StatusBadge status={found.status} size="big" />
      </div>
      <p className="fact mb-5 break-words">{fact(found)}</p>
      <Timeline label={t("lookup.timeline")} steps={stepsOf(found)} />
      {foot ? <div className="foot small text-soft">{foot}</div> : null}
    </section>
  );
}
