import type { IncomingRow } from "./types";

/** True when a decision of this organization is due: nobody waits for the person, and nobody else has it. */
export const isDue = (row: Pick<IncomingRow, "status" | "needs_more_proof">): boolean =>
  (row.status === "pending" && !row.needs_more_proof) || row.status === "processing";

/** Whole days that a due request has waited, once that is worth naming; else null. */
export const namedWaiting = (row: Pick<IncomingRow, "status" | "needs_more_proof" | "waiting_days">): number | null =>
  isDue(row) && row.waiting_days !== null && row.waiting_days >= WAITING_NAMED_FROM_DAYS ? row.waiting_days : null;

/** Days from which a waiting time is named: the first answer is promised in 3 to 5 business days. */
export const WAITING_NAMED_FROM_DAYS = 3;
