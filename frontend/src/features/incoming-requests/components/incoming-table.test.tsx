import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderScreen } from "@/testing/render";
import type { IncomingRow } from "../types";
import { IncomingTable } from "./incoming-table";

const row = (number: string, changes: Partial<IncomingRow>): IncomingRow => ({
  request_id: `id-of-${number}`,
  nonprofit_id: "np-001",
  request_number: number,
  category: "Food Assistance",
  amount: "$250",
  amount_requested: 250,
  amount_approved: null,
  status: "pending",
  part: "open",
  needs_more_proof: false,
  opened: false,
  submitted_at: "2026-11-20T15:00:00Z",
  waiting_days: 2,
  requester_name: null,
  assigned_to: null,
  ...changes,
});

it("names each link by what it does, the kind of help and the number", () => {
  renderScreen(
    <IncomingTable
      caption="Requests"
      mayDecide
      href={(id) => `/nonprofit-request/${id}`}
      rows={[
        row("REQ-001", {}),
        row("REQ-002", {}),
        row("REQ-003", { status: "approved", part: "claimed", waiting_days: null }),
      ]}
    />,
  );
  for (const [action, number] of [
    ["Review", "REQ-001"],
    ["Review", "REQ-002"],
    ["View", "REQ-003"],
  ]) {
    expect(screen.getByRole("link", { name: `${action}, Food Assistance, ${number}` })).toHaveAttribute(
      "href",
      `/nonprofit-request/id-of-${number}`,
    );
  }
});
