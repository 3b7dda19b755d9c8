import { screen, waitFor } from "@testing-library/react";
import { useState } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import type { CategorySpending } from "../api";
import { AllocationsForm } from "./allocations-form";

interface Written {
  nonprofit_id: string;
  category: string;
  amount: number;
}
const rpc = vi.hoisted(() => vi.fn<(name: string, input: Written) => Promise<{ error: null }>>());
vi.mock("@/lib/supabase", () => ({ getSupabase: () => Promise.resolve({ rpc }) }));

const line = (category: string, allocated: number): CategorySpending => ({
  category,
  allocated,
  amount: 0,
  percentage: 0,
});
const before = [line("Food Assistance", 1000), line("Rent Support", 500)];
/** What a colleague made of it meanwhile. */
const after = [line("Food Assistance", 1000), line("Medical Aid", 70), line("Rent Support", 800)];

function Page({ spending: first }: { spending: CategorySpending[] }) {
  const [spending, setSpending] = useState(first);
  return (
    <>
      <button type="button" onClick={() => setSpending(after)}>
        Read again
      </button>
      <AllocationsForm nonprofitId="np-001" userId="u1" spending={spending} categories={[]} onClose={() => undefined} />
    </>
  );
}
const written = () => rpc.mock.calls.map(([, input]) => input);
const food = () => screen.getByLabelText("Food Assistance");
const saveButton = () => screen.getByRole("button", { name: "Save allocations" });
const writes = (category: string, amount: number) => ({ nonprofit_id: "np-001", category, amount });

beforeEach(() => {
  sessionStorage.clear();
  rpc.mockReset().mockResolvedValue({ error: null });
});

it("writes only what this person changed, not what a colleague changed meanwhile", async () => {
  const { user } = renderScreen(<Page spending={before} />);
  await user.clear(food());
  await user.type(food(), "1200");
  await user.click(screen.getByRole("button", { name: "Read again" }));
  await user.click(saveButton());
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  expect(written()).toEqual([writes("Food Assistance", 1200)]);
});

it("does the same after a reload, with the lines that it was opened with", async () => {
  const first = renderScreen(<Page spending={before} />);
  await first.user.click(screen.getByRole("button", { name: "Add category" }));
  await first.user.type(screen.getByLabelText("Another category"), "Firewood");
  await first.user.type(screen.getByLabelText("Amount"), "50");
  first.unmount();
  const { user } = renderScreen(<Page spending={after} />);
  expect(screen.getByLabelText("Another category")).toHaveValue("Firewood");
  await user.click(saveButton());
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  expect(written()).toEqual([writes("Firewood", 50)]);
});

it("writes a line again that a failed attempt may have written", async () => {
  const { user } = renderScreen(<Page spending={before} />);
  rpc.mockRejectedValueOnce(new TypeError("Failed to fetch"));
  await user.clear(food());
  await user.type(food(), "1200");
  await user.click(saveButton());
  expect(await screen.findByRole("alert")).toBeInTheDocument();
  await user.clear(food());
  await user.type(food(), "1000");
  await user.click(saveButton());
  await waitFor(() => expect(rpc).toHaveBeenCalledTimes(2));
  expect(written().at(-1)).toEqual(writes("Food Assistance", 1000));
});
