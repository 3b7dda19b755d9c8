import type { ReactNode } from "react";
import { StatusShape } from "./status-badge";

/** The state of a gift, shown like that of a request: waiting, done, cancelled. */
const looks = { pledged: "pending", received: "approved", cancelled: "withdrawn" } as const;

/** Word + shape + colour of a donation; the word comes from the page's catalogue. */
export function DonationBadge({ status, children }: { status: keyof typeof looks; children: ReactNode }) {
  const look = looks[status];
  return (
    <span className={`badge ${look}`}>
      <StatusShape status={look} />
      {children}
    </span>
  );
}
