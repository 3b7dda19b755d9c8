import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderScreen } from "@/testing/render";
import type { VisibleRequest } from "../types";
import { DecisionPanel } from "./decision-panel";

const nothing = { approve: false, deny: false, ask_info: false, second_approval: false };
const withStatus = (status: VisibleRequest["request"]["status"], part: VisibleRequest["part"]) =>
  ({
    visible: true,
    request: { id: "r-1", request_number: "REQ-001", amount: "$250", status, needs_more_proof: false },
    part,
    timeline: [],
    also_sent_to: [],
    budget_remaining: 5000,
    own: false,
    can: nothing,
  }) as unknown as VisibleRequest;

it.each([
  ["withdrawn", "withdrawn", /^This request has already been withdrawn\./],
  ["approved", "claimed", /^This request has already been approved\./],
  ["declined", "denied", /^This request has already been declined\./],
] as const)("says of a %s request that it is so, and offers no answer", (status, part, words) => {
  renderScreen(<DecisionPanel opened={withStatus(status, part)} mayDecide userId="u-1" onDecide={() => undefined} />);
  expect(screen.getByText(words)).toBeInTheDocument();
  expect(screen.queryByRole("button")).toBeNull();
});
