import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";
import { t } from "@/messages";

export const requestStatuses = [
  "draft",
  "pending",
  "in_review",
  "processing",
  "approved",
  "declined",
  "withdrawn",
] as const;
export type RequestStatus = (typeof requestStatuses)[number];
export type BadgeStatus = RequestStatus | "needs_more_proof";

/** The shape fills as the request moves on; the word and the colour say the same. */
const shapes: Record<BadgeStatus, { className: string; shape: ReactNode }> = {
  draft: {
    className: "draft",
    shape: <circle className="ss" cx="8" cy="8" r="5.5" strokeDasharray="3.4 2.4" />,
  },
  pending: { className: "pending", shape: <circle className="ss" cx="8" cy="8" r="5.5" /> },
  in_review: {
    className: "review",
    shape: (
      <>
        <circle className="ss" cx="8" cy="8" r="5.5" />
        <path className="sf" d="M8 2.5a5.5 5.5 0 0 1 0 11z" />
      </>
    ),
  },
  processing: {
    className: "processing",
    shape: (
      <>
        <circle className="ss" cx="8" cy="8" r="5.5" />
        <path className="sf" d="M8 8V2.5A5.5 5.5 0 1 1 2.5 8z" />
      </>
    ),
  },
  approved: {
    className: "approved",
    shape: (
      <>
        <circle className="sf" cx="8" cy="8" r="6.5" />
        <path className="sk" d="M5 8.2l2.1 2.1L11 6.2" />
      </>
    ),
  },
  declined: {
    className: "declined",
    shape: (
      <>
        <path className="sf" d="M5.3 1.5h5.4l3.8 3.8v5.4l-3.8 3.8H5.3l-3.8-3.8V5.3z" />
        <path className="sk" d="M5 8h6" />
      </>
    ),
  },
  withdrawn: {
    className: "withdrawn",
    shape: <path className="ss" d="M6 3.5 2.5 7 6 10.5M2.5 7h7a4 4 0 0 1 4 4v1.5" />,
  },
  needs_more_proof: {
    className: "info",
    shape: (
      <>
        <path className="sf" d="M8 .8 15.2 8 8 15.2.8 8z" />
        <path className="sk" d="M8 4.8v3.6M8 11.2v0" />
      </>
    ),
  },
};

/** Only a badge's shape, for other states shown with the same shapes. */
export function StatusShape({ status }: { status: BadgeStatus }) {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      {shapes[status].shape}
    </svg>
  );
}

export interface StatusBadgeProps extends ComponentProps<"span"> {
  status: BadgeStatus;
  /** A pending request that waits for the requester shows 'Needs More Proof' instead. */
  needsMoreProof?: boolean;
  size?: "default" | "big";
}

/** A request's state: word + shape + colour, the same everywhere. */
export function StatusBadge({ status, needsMoreProof, size, className, ...props }: StatusBadgeProps) {
  const shown: BadgeStatus = needsMoreProof && status === "pending" ? "needs_more_proof" : status;
  return (
    <span className={cn("badge", shapes[shown].className, size === "big" && "big", className)} {...props}>
      <StatusShape status={shown} />
      {t(`common.status.${shown}`)}
    </span>
  );
}
