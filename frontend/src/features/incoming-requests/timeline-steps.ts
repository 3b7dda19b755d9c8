import type { TimelineStep } from "@/components/timeline";
import { formatDate, formatDateTime, formatMoney } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/incoming";
import type { TimelineEvent, VisibleRequest } from "./types";

/** Days within which a decision is promised (section 1: 5 to 7). */
const PROMISED_DAYS = 7;

const last = (events: readonly TimelineEvent[], type: TimelineEvent["type"]) =>
  events.findLast((event) => event.type === type);

/** The three steps of section 4, with their known data. */
export function timelineSteps(
  { request, timeline }: Pick<VisibleRequest, "request" | "timeline">,
  now: Date = new Date(),
): TimelineStep[] {
  const decided = request.status === "approved" || request.status === "declined" || request.status === "withdrawn";
  const opened = timeline.find((event) => event.type === "opened");
  const asked = last(timeline, "info_requested");
  const answered = last(timeline, "info_answered");
  const first = last(timeline, "first_approval");
  const paid = timeline.filter((event) => event.type === "paid");

  const review = [
    opened
      ? opened.staff_name
        ? t("incoming.openedBy", { name: opened.staff_name, date: formatDate(opened.created_at) })
        : t("incoming.openedOn", { date: formatDate(opened.created_at) })
      : t("incoming.notOpened"),
    asked ? t("incoming.infoAskedOn", { date: formatDate(asked.created_at) }) : null,
    answered && (!asked || answered.created_at > asked.created_at)
      ? t("incoming.infoAnsweredOn", { date: formatDate(answered.created_at) })
      : null,
    first ? t("incoming.firstApprovalOn", { date: formatDate(first.created_at) }) : null,
  ].filter((line) => line !== null);

  const promised = new Date(request.submitted_at);
  promised.setDate(promised.getDate() + PROMISED_DAYS);

  return [
    { title: t("incoming.stepSubmitted"), state: "complete", when: formatDateTime(request.submitted_at) },
    {
      title: t("incoming.stepReview"),
      state: request.status === "pending" ? "current" : "complete",
      when: review[0],
      body: review.length > 1 ? review.slice(1).join(" · ") : undefined,
    },
    {
      title: t("incoming.stepDecision"),
      state: decided ? "complete" : request.status === "processing" ? "current" : "upcoming",
      when: decided
        ? t("incoming.decidedOn", {
            status: t(`common.status.${request.status}`),
            date: formatDate(request.decided_at ?? last(timeline, "withdrawn")?.created_at ?? request.submitted_at),
          })
        : undefined,
      body: decided
        ? paid
            .map((event) =>
              t("incoming.paidOn", { amount: formatMoney(event.amount ?? 0), date: formatDate(event.created_at) }),
            )
            .join(" · ") || undefined
        : t(promised < now ? "incoming.promisedLate" : "incoming.promisedBy", { date: formatDate(promised) }),
    },
  ];
}
