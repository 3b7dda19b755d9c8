import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { Component } from "./my-profile";

const updateUser = vi.hoisted(() => vi.fn<(change: { data: object }) => Promise<{ error: null }>>());
vi.mock("@/lib/supabase", () => ({
  getSupabase: () =>
    Promise.resolve({ auth: { updateUser }, rpc: () => Promise.resolve({ data: null, error: { code: "none" } }) }),
}));

beforeEach(() => {
  sessionStorage.clear();
  updateUser.mockReset().mockResolvedValue({ error: null });
});

it("keeps what was typed, and sends only that", async () => {
  const first = renderScreen(<Component />);
  await first.user.type(screen.getByRole("textbox", { name: /^Phone/ }), "2075550100");
  first.unmount();
  const { user } = renderScreen(<Component />);
  expect(screen.getByRole("textbox", { name: /^Phone/ })).toHaveValue("2075550100");
  await user.click(screen.getByRole("button", { name: "Save Changes" }));
  await waitFor(() => expect(sessionStorage).toHaveLength(0));
  expect(updateUser.mock.calls).toEqual([[{ data: { phone: "2075550100" } }]]);
});
