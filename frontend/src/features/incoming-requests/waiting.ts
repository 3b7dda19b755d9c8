import type { IncomingRow } from "./types";

/** True if this organization has to decide: it does not wait for the person and is not taken. */
export const isDue = (row: Pick<IncomingRow, "status" | "needs_more_proof">): boolean =>
  (row.status === "pending" && !row.needs_more_proof) || row.status === "processing";

/** The whole days that a due request has waited, or null if too few to show. */
export const namedWaiting = (row: Pick<IncomingRow, "status" | "needs_more_proof" | "waiting_days">): number | null =>
  isDue(row) && row.waiting_days !== null && row.waiting_days >= WAITING_NAMED_FROM_DAYS ? row.waiting_days : null;

/** The wait in days from which it is shown: the first answer is promised in 3 to 5 business days. */
export const WAITING_NAMED_FROM_DAYS = 3;
