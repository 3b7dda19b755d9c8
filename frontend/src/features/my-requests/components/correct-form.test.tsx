import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { rpc } from "@/lib/rpc";
import type { RequestRow } from "../api";
import { CorrectForm } from "./correct-form";

vi.mock("@/lib/rpc", () => ({ rpc: vi.fn(() => Promise.resolve({ corrected: true })) }));

const request = {
  id: "r-1",
  first_name: "Ann",
  last_name: "Lee",
  phone: "2075550100",
  sms_consent: false,
  address: "1 High Street",
  city: "Portland",
  state: "ME",
  postal_code: "04101",
} as RequestRow;

it("accepts only a town from a requester who has lost their address", async () => {
  const user = userEvent.setup();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <CorrectForm request={request} />
    </QueryClientProvider>,
  );
  await user.click(screen.getByRole("button", { name: "Correct my contact data" }));
  expect(screen.getByLabelText("Street address")).toHaveValue("1 High Street");
  await user.click(screen.getByRole("checkbox", { name: "I have no fixed address" }));
  expect(screen.queryByLabelText("Street address")).toBeNull();
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  expect(vi.mocked(rpc).mock.lastCall?.[1]).toMatchObject({
    input: { address: "No fixed address", postal_code: "none", city: "Portland", first_name: "Ann" },
  });
});
