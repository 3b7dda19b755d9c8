import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { screen, within } from "@testing-library/react";
import { useEffect } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { aUser } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { emptyAnswers, emptyIdentity, type Answers } from "../answers";
import type { Kept } from "../storage";
import { useAnswers, type AnswersState } from "../use-answers";
import { SinglePageForm } from "./single-page";

const known = { ...emptyIdentity, phone: "+1 207 555 0142", address: "18 Main Street", city: "Portland" };
vi.mock("../api", () => ({
  lastIdentityQuery: (userId: string) =>
    queryOptions({ queryKey: ["identity", userId], queryFn: () => Promise.resolve(known) }),
  directoryQuery: () =>
    infiniteQueryOptions({
      queryKey: ["directory"],
      queryFn: () => Promise.resolve({ rows: [], total: 0 }),
      initialPageParam: 0,
      getNextPageParam: () => undefined,
    }),
  saveDraft: () => Promise.resolve({ id: "draft-1", updated_at: "2026-01-01T00:00:00Z" }),
}));
vi.mock("@/lib/help-kinds-query", () => ({
  helpKindsQuery: queryOptions({
    queryKey: ["kinds"],
    queryFn: () => Promise.resolve([{ id: "cat-001", name: "Food Assistance", description: "Groceries" }]),
  }),
}));
vi.mock("@/lib/env", () => ({ useAppConfig: () => ({ sms: true }) }));

const account = aUser({ id: "u1", fullName: "Marie Désir", email: "marie@test.example" });
const kept = (answers: Partial<Answers>): Kept => ({
  answers: { ...emptyAnswers("key-1", "single"), ...answers },
  dirty: false,
  syncedAt: null,
  sent: null,
});
const food = { id: "cat-001", name: "Food Assistance" };
const slot = { userId: "u1", draftId: null };

const shown: { state?: AnswersState } = {};
function Page({ initial }: { initial: Kept }) {
  const state = useAnswers(slot, initial, true);
  useEffect(() => {
    shown.state = state;
  });
  return <SinglePageForm state={state} user={account} expired={false} />;
}
const open = (answers: Partial<Answers> = {}, more: Partial<Kept> = {}) =>
  renderScreen(<Page initial={{ ...kept(answers), ...more }} />, { session: { user: account } });

beforeEach(() => sessionStorage.clear());

it("after the answers are cleared, the page is empty but for what is known of the signed-in user", async () => {
  const { user } = open({ category: food, description: "We need food until my new job starts.", amount: "250" });
  expect(await screen.findByLabelText("Details")).toHaveValue("We need food until my new job starts.");
  await user.clear(screen.getByLabelText("First name"));
  await user.type(screen.getByLabelText("First name"), "Ann");
  await user.click(screen.getByRole("button", { name: "Clear my answers" }));
  await user.click(within(screen.getByRole("alertdialog")).getByRole("button", { name: "Clear my answers" }));
  expect(await screen.findByLabelText("Details")).toHaveValue("");
  expect(screen.getByLabelText(/^Amount/)).toHaveValue("");
  expect(screen.getByLabelText("Email")).toHaveValue("marie@test.example");
  expect(screen.getByLabelText("First name")).toHaveValue("Marie");
  expect(screen.getByLabelText("Street address")).toHaveValue("18 Main Street");
  expect(shown.state?.answers.identity).toMatchObject({ firstName: "Marie", email: "marie@test.example" });
});

it("a request that waits for a connection still waits when the page is shown, and no longer once it is changed", async () => {
  const line = vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  const identity = { ...known, firstName: "Marie", lastName: "Désir", email: "marie@test.example" };
  const { user } = open({ category: food, identity, description: "We need food." }, { waits: true });
  await screen.findByRole("option", { name: "Food Assistance" });
  expect(shown.state).toMatchObject({ waits: true });
  await user.type(screen.getByLabelText("Details"), " And");
  expect(shown.state).toMatchObject({ waits: false, stopped: true });
  expect(screen.getByText(/it does not go by itself anymore/)).toBeInTheDocument();
  line.mockRestore();
});
