import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderScreen } from "@/testing/render";
import type { RequestLine } from "../api";
import { RequestList } from "./request-list";

const line = (number: string): RequestLine => ({
  id: `id-of-${number}`,
  request_number: number,
  category: "Food Assistance",
  amount: "$250",
  amount_requested: 250,
  amount_approved: null,
  status: "pending",
  needs_more_proof: false,
  nonprofit_names: ["Harbor Relief Fund"],
  submitted_at: "2026-11-20T15:00:00Z",
});

it("names each link by what it does, the kind of help and the number", () => {
  renderScreen(<RequestList label="Recent Requests" rows={[line("REQ-001"), line("REQ-002")]} />);
  for (const number of ["REQ-001", "REQ-002"]) {
    expect(screen.getByRole("link", { name: `View Details, Food Assistance, ${number}` })).toHaveAttribute(
      "href",
      `/request-details/id-of-${number}`,
    );
  }
  expect(screen.getAllByRole("link")).toHaveLength(2);
});
