import { StatusBadge } from "@/components/status-badge";
import { cn } from "@/lib/cn";
import { t } from "@/messages";
import "@/messages/en/incoming";
import type { IncomingStatus } from "../types";

export interface IncomingBadgeProps {
  status: IncomingStatus;
  needsMoreProof?: boolean;
  size?: "default" | "big";
}

/** A request's state for one organization: the shared badges, and 'Taken' if another nonprofit has it. */
export function IncomingBadge({ status, needsMoreProof, size }: IncomingBadgeProps) {
  if (status !== "taken") return <StatusBadge status={status} needsMoreProof={needsMoreProof} size={size} />;
  return (
    <span className={cn("badge withdrawn", size === "big" && "big")}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path className="ss" d="M3 8h9M8.5 4.5 12 8l-3.5 3.5" />
      </svg>
      {t("incoming.takenShort")}
    </span>
  );
}
