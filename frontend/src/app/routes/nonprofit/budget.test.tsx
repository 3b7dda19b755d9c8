import { screen } from "@testing-library/react";
import { NuqsTestingAdapter } from "nuqs/adapters/testing";
import { beforeEach, expect, it, vi } from "vitest";
import { anOrganization } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { Component as BudgetPage } from "./budget";

interface Answer {
  data: unknown;
  error: { code: string } | null;
}
const categories = vi.hoisted(() => vi.fn<() => Promise<Answer>>());
vi.mock("@/lib/rpc", () => ({
  nothing: {},
  rpc: () =>
    Promise.resolve({
      totalAllocated: 0,
      totalDonated: 0,
      totalApproved: 0,
      totalPaid: 0,
      remainingAvailable: 0,
      percentSpent: 0,
      spendingByCategory: [],
      recentTransactions: [],
      rows: [],
      total: 0,
    }),
}));
vi.mock("@/lib/supabase", () => {
  const from = (table: string) => {
    const query: object = new Proxy(
      {},
      {
        get: (_, name) =>
          name === "then"
            ? (done: (answer: unknown) => void) =>
                void (
                  table === "categories" ? categories() : Promise.resolve({ data: [], count: 0, error: null })
                ).then(done)
            : () => query,
      },
    );
    return query;
  };
  return { getSupabase: () => Promise.resolve({ from }) };
});

const open = () =>
  renderScreen(
    <NuqsTestingAdapter hasMemory>
      <BudgetPage />
    </NuqsTestingAdapter>,
    { session: { organization: anOrganization() } },
  );

beforeEach(() => {
  sessionStorage.clear();
  categories.mockReset();
});

it("says that the kinds of help are still loading when the allocations are to be changed", async () => {
  let come: (answer: Answer) => void = () => undefined;
  categories.mockImplementation(() => new Promise((done) => (come = done)));
  const { user } = open();
  await user.click(await screen.findByRole("button", { name: "Set allocations" }));
  expect(screen.getByRole("button", { name: "Cancel" })).toBeVisible();
  come({ data: [{ id: "c1", name: "Firewood", description: null }], error: null });
  expect(await screen.findByLabelText("Firewood")).toBeVisible();
  expect(screen.getAllByRole("button", { name: "Cancel" })).toHaveLength(1);
});

it("says that they could not be loaded, and offers another try or to leave it", async () => {
  categories.mockResolvedValueOnce({ data: null, error: { code: "57014" } });
  const { user } = open();
  await user.click(await screen.findByRole("button", { name: "Set allocations" }));
  expect(await screen.findByText("Failed to load categories")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  await user.click(await screen.findByRole("button", { name: "Set allocations" }));
  categories.mockResolvedValue({ data: [{ id: "c1", name: "Firewood", description: null }], error: null });
  await user.click(screen.getByRole("button", { name: "Try again" }));
  expect(await screen.findByLabelText("Firewood")).toBeVisible();
});
