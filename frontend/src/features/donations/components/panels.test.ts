import { expect, it } from "vitest";
import type { Gift } from "../api";
import { givenByNonprofit } from "./panels";

const gift = (nonprofit_id: string, amount: number, status: Gift["status"] = "received"): Gift => ({
  id: `${nonprofit_id}-${amount}-${status}`,
  nonprofit_id,
  nonprofit_name: `Nonprofit ${nonprofit_id}`,
  amount,
  status,
  pledged_at: "2026-06-30T00:00:00Z",
  received_at: status === "received" ? "2026-06-30T00:00:00Z" : null,
});

it("sums received gifts per nonprofit, largest first, without pledges and cancelled gifts", () => {
  const gifts = [gift("b", 300), gift("a", 450), gift("b", 200), gift("c", 999, "pledged"), gift("a", 5, "cancelled")];
  expect(givenByNonprofit(gifts).map(({ id, given }) => [id, given])).toEqual([
    ["b", 500],
    ["a", 450],
  ]);
});
