import { screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { Dialog } from "@/components/ui/dialog";
import { renderScreen } from "@/testing/render";
import { DonationDialog, PayoutDialog } from "./entry-dialogs";

const reused = { code: "PT409", message: "This was sent already.", hint: "key_reused", details: null };
const rpc = vi.hoisted(() => vi.fn());
vi.mock("@/lib/supabase", () => ({ getSupabase: () => Promise.resolve({ rpc }) }));

beforeEach(() => {
  sessionStorage.clear();
  rpc.mockReset();
});
const keys = () => rpc.mock.calls.map((call) => (call[1] as { key: string }).key);

it("reports that an entry was already recorded and records another when it is sent again", async () => {
  rpc.mockResolvedValueOnce({ error: reused }).mockResolvedValueOnce({ error: null });
  const onClose = vi.fn();
  const { user } = renderScreen(
    <Dialog open>
      <DonationDialog nonprofitId="np-001" userId="u1" onClose={onClose} />
    </Dialog>,
  );
  await user.type(screen.getByLabelText("Donor"), "Priya Raman");
  await user.type(screen.getByLabelText("Amount"), "40");
  await user.click(screen.getByRole("button", { name: "Record $40" }));
  expect(await screen.findByText(/This was sent already/)).toBeVisible();
  expect(screen.getByLabelText("Amount")).toHaveValue("40");
  expect(onClose).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Record $40" }));
  await vi.waitFor(() => expect(onClose).toHaveBeenCalled());
  const [first, second] = keys();
  expect(first).not.toBe(second);
});

const grant = {
  request_id: "r1",
  request_number: "REQ-170",
  category: "Rent Support",
  requester_name: "Marie Désir",
  granted: 300,
  paid: 0,
  outstanding: 300,
  approved_at: "2026-01-01T00:00:00Z",
};
const entries = {
  donation: () => <DonationDialog nonprofitId="np-001" userId="u1" onClose={() => undefined} />,
  payout: () => <PayoutDialog nonprofitId="np-001" userId="u1" grant={grant} onClose={() => undefined} />,
};
it.each(["donation", "payout"] as const)(
  "keeps a %s that was typed until it is recorded or cancelled",
  async (entry) => {
    const open = () => renderScreen(<Dialog open>{entries[entry]()}</Dialog>);
    const first = open();
    if (entry === "donation") await first.user.type(screen.getByLabelText("Donor"), "Priya Raman");
    await first.user.clear(screen.getByLabelText("Amount"));
    await first.user.type(screen.getByLabelText("Amount"), "40");
    // the answer is lost
    rpc.mockRejectedValueOnce(new TypeError("Failed to fetch"));
    await first.user.click(screen.getByRole("button", { name: "Record $40" }));
    await screen.findByRole("alert");
    first.unmount();

    const second = open();
    expect(screen.getByLabelText("Amount")).toHaveValue("40");
    rpc.mockResolvedValueOnce({ error: null });
    await second.user.click(screen.getByRole("button", { name: "Record $40" }));
    await vi.waitFor(() => expect(sessionStorage).toHaveLength(0));
    expect(new Set(keys()).size).toBe(1);
    second.unmount();

    const third = open();
    expect(screen.getByLabelText("Amount")).toHaveValue(entry === "donation" ? "" : "300");
    await third.user.type(screen.getByLabelText("Amount"), "1");
    expect(sessionStorage).not.toHaveLength(0);
    await third.user.click(screen.getByRole("button", { name: "Cancel" }));
    expect(sessionStorage).toHaveLength(0);
  },
);
