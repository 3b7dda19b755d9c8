import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { Dialog } from "@/components/ui/dialog";
import { renderScreen } from "@/testing/render";
import { DonationDialog } from "./entry-dialogs";

const reused = { code: "PT409", message: "This was sent already.", hint: "key_reused", details: null };
const rpc = vi.hoisted(() => vi.fn());
vi.mock("@/lib/supabase", () => ({ getSupabase: () => Promise.resolve({ rpc }) }));

it("reports that an entry was already recorded and records another when it is sent again", async () => {
  rpc.mockResolvedValueOnce({ error: reused }).mockResolvedValueOnce({ error: null });
  const onClose = vi.fn();
  const { user } = renderScreen(
    <Dialog open>
      <DonationDialog nonprofitId="np-001" onClose={onClose} />
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
  const [first, second] = rpc.mock.calls.map((call) => (call[1] as { key: string }).key);
  expect(first).not.toBe(second);
});
