/** The three steps of a request and their states (section 4). */
import type { TimelineStep } from "@/components/timeline";
import { decisionBy, firstAnswerBy, isOver, wordBy } from "@/lib/dates";
import { formatDate, formatDateTime, formatLongDate, formatMoney } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import type { RequestRow } from "./api";

type Subject = Pick<
  RequestRow,
  "status" | "needs_more_proof" | "submitted_at" | "review_started_at" | "decided_at" | "amount_approved"
>;

export type StepState = TimelineStep["state"];

/** Under Review: current when pending, complete once processing or decided, upcoming otherwise. */
export function reviewState(status: RequestRow["status"]): StepState {
  if (status === "pending" || status === "in_review") return "current";
  return status === "processing" || status === "approved" || status === "declined" ? "complete" : "upcoming";
}

/** Decision: complete when approved or declined. */
export const decisionState = (status: RequestRow["status"]): StepState =>
  status === "approved" || status === "declined" ? "complete" : "upcoming";

function reviewWords(request: Subject, now: Date): string | undefined {
  if (request.status === "processing") return t("myRequests.reviewDone");
  if (request.status !== "pending") return undefined;
  if (request.needs_more_proof) return t("myRequests.reviewProof");
  const by = firstAnswerBy(request.submitted_at);
  const date = formatLongDate(by);
  if (isOver(by, now)) return t("myRequests.reviewLate", { date });
  return t(request.review_started_at ? "myRequests.reviewOpened" : "myRequests.reviewWaiting", { date });
}

function decisionWords(request: Subject, now: Date): string | undefined {
  switch (request.status) {
    case "approved": {
      const approved = t("myRequests.decisionApproved", { amount: formatMoney(request.amount_approved ?? 0) });
      const by = request.decided_at && wordBy(request.decided_at);
      return by ? `${approved} ${t("myRequests.decisionNext", { date: formatLongDate(by) })}` : approved;
    }
    case "declined":
      return t("myRequests.decisionDeclined");
    case "pending":
    case "processing": {
      if (request.needs_more_proof) return t("myRequests.decisionAfterProof");
      const by = decisionBy(request.submitted_at);
      return isOver(by, now) ? t("myRequests.decisionSoon") : t("myRequests.decisionBy", { date: formatLongDate(by) });
    }
    default:
      return undefined;
  }
}

export function timelineOf(request: Subject, now = new Date()): TimelineStep[] {
  const steps: TimelineStep[] = [
    { title: t("myRequests.submitted"), state: "complete", when: formatDateTime(request.submitted_at) },
  ];
  if (request.status === "withdrawn") {
    const when = request.decided_at ? formatDateTime(request.decided_at) : undefined;
    return [
      ...steps,
      { title: t("myRequests.withdrawn"), state: "complete", when, body: t("myRequests.withdrawnBody") },
    ];
  }
  const started = request.review_started_at;
  return [
    ...steps,
    {
      title: t("myRequests.underReview"),
      state: reviewState(request.status),
      when: started
        ? request.status === "pending"
          ? t("myRequests.since", { date: formatDate(started) })
          : formatDate(started)
        : undefined,
      body: reviewWords(request, now),
    },
    {
      title: t("myRequests.decision"),
      state: decisionState(request.status),
      when: request.decided_at ? formatDateTime(request.decided_at) : undefined,
      body: decisionWords(request, now),
    },
  ];
}
