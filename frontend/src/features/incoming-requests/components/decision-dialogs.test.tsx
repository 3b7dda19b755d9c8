import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import type { VisibleRequest } from "../types";
import { DecisionDialog } from "./decision-dialogs";

const rpc = vi.hoisted(() => vi.fn());
vi.mock("@/lib/supabase", () => ({ getSupabase: () => Promise.resolve({ rpc }) }));

const opened = {
  visible: true,
  request: {
    id: "r-1",
    request_number: "REQ-001",
    category: "Food Assistance",
    amount: "$250",
    amount_requested: 250,
    amount_approved: null,
    status: "pending",
    first_name: "Marie",
    last_name: "Désir",
  },
  part: "open",
  timeline: [],
  also_sent_to: [],
  budget_remaining: 5000,
  second_approval_above: null,
  own: false,
  can: { approve: true, deny: true, ask_info: true, second_approval: false },
} as unknown as VisibleRequest;

const approve = (budget_remaining = 5000) =>
  renderScreen(
    <DecisionDialog
      kind="approve"
      opened={{ ...opened, budget_remaining }}
      nonprofitId="np-1"
      userId="u-1"
      onClose={() => undefined}
    />,
  );
const once = "Please look at the amount once more";

beforeEach(() => {
  sessionStorage.clear();
  rpc.mockReset().mockResolvedValue({
    data: { status: "approved", amount: "$250", second_approval_needed: false },
    error: null,
  });
});

it("confirms an amount ten times the requested one, a likely extra zero", async () => {
  const { user } = approve();
  const amount = await screen.findByLabelText("Amount");
  await user.clear(amount);
  await user.type(amount, "2500");
  await user.click(screen.getByRole("button", { name: "Approve for $2,500" }));
  expect(await screen.findByText(once)).toBeInTheDocument();
  expect(screen.getByText("$2,500 is ten times what was asked for ($250), or more.")).toBeInTheDocument();
  expect(rpc).not.toHaveBeenCalled();
  // another amount is another question
  await user.clear(amount);
  await user.type(amount, "25000");
  expect(screen.queryByText(once)).toBeNull();
  await user.click(screen.getByRole("button", { name: "Approve for $25,000" }));
  expect(await screen.findByText(/^\$25,000 is ten times/)).toBeInTheDocument();
  expect(screen.getByText("$25,000 is more than the budget has left.")).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Yes, approve $25,000" }));
  await waitFor(() =>
    expect(rpc.mock.calls[0]?.slice(0, 2)).toEqual([
      "approve_request",
      { request_id: "r-1", nonprofit_id: "np-1", amount: 25_000, accept_over_budget: true },
    ]),
  );
});

it("confirms an amount above the remaining budget", async () => {
  const { user } = approve(100);
  await user.click(await screen.findByRole("button", { name: "Approve for $250" }));
  expect(await screen.findByText(once)).toBeInTheDocument();
  expect(rpc).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Yes, approve $250" }));
  await waitFor(() => expect(rpc).toHaveBeenCalledOnce());
});

it("accepts an amount near the requested one without confirmation", async () => {
  const { user } = approve();
  const amount = await screen.findByLabelText("Amount");
  await user.clear(amount);
  await user.type(amount, "2499.99");
  await user.click(screen.getByRole("button", { name: "Approve for $2,499.99" }));
  await waitFor(() => expect(rpc).toHaveBeenCalledOnce());
  expect(screen.queryByText(once)).toBeNull();
});
