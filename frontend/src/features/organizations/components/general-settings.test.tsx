import { useQuery } from "@tanstack/react-query";
import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { helpKindsQuery } from "@/lib/help-kinds-query";
import { renderScreen } from "@/testing/render";
import { organizationQuery } from "../api";
import { GeneralSettings } from "./general-settings";

interface Save {
  nonprofit_id: string;
  changes: Record<string, unknown>;
  seen: Record<string, unknown>;
}
const rpc = vi.hoisted(() => vi.fn<(name: string, input: Save) => Promise<unknown>>());
const stored = vi.hoisted(() => ({ row: {} as Record<string, unknown> }));
vi.mock("@/lib/rpc", () => ({ rpc, nothing: {} }));
vi.mock("@/lib/supabase", () => {
  const query = {
    select: () => query,
    eq: () => query,
    single: () => Promise.resolve({ data: stored.row, error: null }),
  };
  return {
    getSupabase: () =>
      Promise.resolve({ from: () => query, storage: { from: () => ({ getPublicUrl: () => ({ data: {} }) }) } }),
  };
});

const row = {
  id: "np-001",
  name: "Harbor Relief Fund",
  legal_status: "Charity",
  registration_number: "12",
  employee_count: 4,
  mission: "We help.",
  description: null,
  email: null,
  phone: "2075550100",
  website: "https://harbor.example",
  location: "Portland",
  average_response_time_days: 3,
  helps_with: ["cat-food"],
  service_area: ["Portland, ME"],
  logo_path: null,
  status: "active",
  nonprofit_settings: { second_approval_above: 1000 },
};

function Page() {
  const { data } = useQuery(organizationQuery("np-001"));
  return data ? <GeneralSettings details={data} userId="u1" mayEdit onSaved={() => undefined} /> : null;
}
async function open() {
  const view = renderScreen(<Page />);
  view.queryClient.setQueryData(helpKindsQuery.queryKey, [
    { id: "cat-food", name: "Food Assistance" },
    { id: "cat-rent", name: "Rent Support" },
  ] as never);
  await screen.findByLabelText("Organization name");
  return view;
}
const field = (label: RegExp) => screen.getByRole("textbox", { name: label });
const mission = () => field(/^Mission/);
const phone = () => field(/^Phone/);
const save = () => screen.getByRole("button", { name: "Save changes" });
const sent = () => rpc.mock.calls.map(([, { changes, seen }]) => ({ changes, seen }));
const refusal = {
  code: "PT409",
  hint: "changed_meanwhile",
  message: "A colleague changed the same settings meanwhile.",
};

beforeEach(() => {
  sessionStorage.clear();
  stored.row = row;
  rpc.mockReset().mockResolvedValue(null);
});

it("does not put back what a colleague changed before the page was opened again", async () => {
  const first = await open();
  await first.user.type(mission(), " All.");
  first.unmount();
  stored.row = { ...row, phone: "2075550111", location: "Bath" };
  const { user } = await open();
  expect(mission()).toHaveValue("We help. All.");
  expect(phone()).toHaveValue("2075550111");
  await user.click(save());
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  expect(sent()).toEqual([{ changes: { mission: "We help. All." }, seen: { mission: "We help." } }]);
});

it("shows what a colleague changed while the page is open", async () => {
  const { user, queryClient } = await open();
  await user.type(mission(), " All.");
  stored.row = { ...row, phone: "2075550111", mission: "We feed." };
  await queryClient.invalidateQueries();
  await waitFor(() => expect(phone()).toHaveValue("2075550111"));
  expect(mission()).toHaveValue("We help. All.");
  await user.click(save());
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  // the person did not see 'We feed.', so the server must refuse
  expect(sent()).toEqual([{ changes: { mission: "We help. All." }, seen: { mission: "We help." } }]);
});

it("shows a colleague's version of the same field, and saves over it only afterwards", async () => {
  const { user } = await open();
  await user.type(mission(), " All.");
  await user.click(screen.getByRole("checkbox", { name: "Rent Support" }));
  stored.row = { ...row, mission: "We feed.", helps_with: [], phone: "2075550111" };
  rpc.mockRejectedValueOnce(refusal);
  await user.click(save());
  const summary = await screen.findByText(/2 answers need another look/);
  expect(summary).toBeInTheDocument();
  expect(mission()).toHaveAccessibleDescription(/Mission: a colleague changed this too/);
  expect(screen.getByText("We feed.")).toBeVisible();
  expect(
    within(screen.getByRole("group", { name: /What you help with/ })).getByText("They left it empty."),
  ).toBeVisible();
  expect(phone()).toHaveValue("2075550111");
  await user.click(screen.getByRole("button", { name: "What you help with: use this version" }));
  expect(screen.getByRole("checkbox", { name: "Food Assistance" })).not.toBeChecked();
  await user.click(save());
  await waitFor(() => expect(rpc).toHaveBeenCalledTimes(2));
  expect(sent().at(-1)).toEqual({ changes: { mission: "We help. All." }, seen: { mission: "We feed." } });
  await waitFor(() => expect(screen.queryByText("We feed.")).toBeNull());
});
