import { afterEach, expect, it } from "vitest";
import { translate, translateMore } from "@/messages/translate";
import { incomingCsv } from "./csv";
import type { IncomingRow } from "./types";

const row: IncomingRow = {
  request_id: "r1",
  nonprofit_id: "np-001",
  request_number: "REQ-001",
  category: "Food Assistance",
  amount: "$250",
  amount_requested: 250,
  amount_approved: null,
  status: "pending",
  part: "open",
  needs_more_proof: true,
  opened: true,
  submitted_at: "2026-11-17T20:03:00+00:00",
  waiting_days: 4,
  assigned_to: null,
  requester_name: "Marie-Thérèse Désir-Beauvoir",
};

afterEach(() => translate("en"));

it("writes one line per request without the requester's name", () => {
  const csv = incomingCsv([
    row,
    {
      ...row,
      request_number: "REQ-002",
      category: "Rent, heating",
      status: "taken",
      amount_requested: null,
      needs_more_proof: false,
    },
    { ...row, request_number: "REQ-003", status: "approved", amount_approved: 99.5, needs_more_proof: false },
  ]);
  expect(csv.split("\r\n")).toEqual([
    "Request ID,Category,Date,Amount,Status,Needs more proof,Approved amount",
    "REQ-001,Food Assistance,2026-11-17,250,Pending,Yes,",
    'REQ-002,"Rent, heating",2026-11-17,,Taken by another nonprofit,No,',
    "REQ-003,Food Assistance,2026-11-17,250,Approved,No,99.5",
    "",
  ]);
  expect(csv).not.toContain("Marie");
});

it("names kinds of help in the reader's language", async () => {
  await translate("es");
  await translateMore("es", "rest");
  expect(incomingCsv([{ ...row, category: "Rent Support" }])).toContain("REQ-001,Ayuda con el alquiler,2026-11-17,");
});
