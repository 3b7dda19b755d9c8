import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { formatDateTime } from "@/lib/format";
import { renderScreen } from "@/testing/render";
import { DraftsScreen } from "./drafts-screen";

const drafts = ["2026-11-20T15:00:00Z", "2026-11-21T16:30:00Z"].map((updated_at, index) => ({
  id: `draft-${index + 1}`,
  description: "",
  category_id: "cat-001",
  amount: "Not specified",
  created_at: updated_at,
  updated_at,
  request_number: null,
  status: "draft",
  title: null,
  categories: { name: "Food Assistance" },
}));
vi.mock("@/lib/supabase", () => {
  const query = { eq: () => query, order: () => Promise.resolve({ data: drafts, error: null }) };
  return { getSupabase: () => Promise.resolve({ from: () => ({ select: () => query }) }) };
});

it("tells two drafts for the same kind of help apart in the names of their links and buttons", async () => {
  renderScreen(<DraftsScreen />);
  for (const { id, updated_at } of drafts) {
    const saved = `Last saved ${formatDateTime(updated_at)}`;
    const link = await screen.findByRole("link", { name: `Continue Food Assistance, ${saved}` });
    expect(link).toHaveAttribute("href", `/submit-request?draft=${id}`);
    expect(screen.getByRole("button", { name: `Delete Food Assistance, ${saved}` })).toBeInTheDocument();
  }
});
