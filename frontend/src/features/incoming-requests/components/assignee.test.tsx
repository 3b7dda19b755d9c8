import { screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { currentToasts } from "@/lib/toast";
import { renderScreen } from "@/testing/render";
import type { VisibleRequest } from "../types";
import { Assignee, canHandOver } from "./assignee";

const rpc = vi.hoisted(() => vi.fn());
vi.mock("@/lib/supabase", () => ({ getSupabase: () => Promise.resolve({ rpc }) }));

const colleagues = [
  { id: "m-ruth", name: "Ruth Okonkwo", you: true },
  { id: "m-sam", name: "Sam Lee", you: false },
];
const opened = {
  request: { id: "r-1", request_number: "REQ-001", status: "pending" },
  part: "open",
  assigned_to: null,
  colleagues,
} as unknown as VisibleRequest;

it("assigns a request on confirmation, not when a name is selected", async () => {
  rpc.mockResolvedValue({ data: { assigned_to: { id: "m-sam", name: "Sam Lee" }, colleagues }, error: null });
  const { user } = renderScreen(<Assignee opened={opened} nonprofitId="np-1" />);
  const who = screen.getByLabelText("Who looks after it");
  expect(who).toHaveDisplayValue("Nobody yet");
  expect(screen.queryByRole("button")).not.toBeInTheDocument();
  await user.selectOptions(who, "Ruth Okonkwo (you)");
  expect(screen.getByRole("button", { name: "Take it" })).toBeInTheDocument();
  await user.selectOptions(who, "Sam Lee");
  expect(rpc).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Hand over" }));
  await waitFor(() => expect(currentToasts().map(({ title }) => title)).toContain("Sam Lee looks after it now"));
  expect(rpc.mock.calls[0]?.slice(0, 2)).toEqual([
    "assign_request",
    { request_id: "r-1", nonprofit_id: "np-1", member_id: "m-sam" },
  ]);
});

it.each<[VisibleRequest["part"], VisibleRequest["request"]["status"], boolean]>([
  ["open", "pending", true],
  ["claimed", "processing", true],
  ["claimed", "approved", false],
  ["denied", "pending", false],
])("%s and %s: can be handed over is %s", (part, status, can) => {
  expect(canHandOver({ ...opened, part, request: { ...opened.request, status } })).toBe(can);
});
