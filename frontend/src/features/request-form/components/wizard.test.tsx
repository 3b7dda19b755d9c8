import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { screen, within } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { aUser } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { emptyAnswers, emptyIdentity, type Answers } from "../answers";
import type { Identity } from "../schema";
import type { Kept } from "../storage";
import { useAnswers } from "../use-answers";
import { Wizard } from "./wizard";

const lastIdentity = vi.hoisted(() => ({ current: null as object | null }));
vi.mock("../api", () => ({
  lastIdentityQuery: (userId: string) =>
    queryOptions({
      queryKey: ["identity", userId],
      queryFn: () => Promise.resolve(lastIdentity.current as Identity | null),
    }),
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

const known: Identity = {
  ...emptyIdentity,
  phone: "+1 207 555 0142",
  address: "18 Main Street",
  city: "Portland",
  state: "ME",
  postalCode: "04101",
};

const noAnswers: Kept = { answers: emptyAnswers("key-1"), dirty: false, syncedAt: null, sent: null };

function NewRequest() {
  const state = useAnswers(account, noAnswers, true);
  return <Wizard state={state} user={user} expired={false} />;
}
const account = { userId: "u1", draftId: null };

function Draft({ answers, textConsent = false }: { answers: Partial<Answers>; textConsent?: boolean }) {
  const state = useAnswers(
    { userId: "u1", draftId: "draft-1" },
    {
      answers: {
        ...emptyAnswers("key-1"),
        draftId: "draft-1",
        category: { id: "cat-001", name: "Food Assistance" },
        nonprofits: [{ id: "np-001", name: "Harbor Relief Fund" }],
        ...answers,
      },
      dirty: false,
      syncedAt: "2026-01-01T00:00:00Z",
      sent: null,
    },
    true,
  );
  return <Wizard state={state} user={{ ...user, textConsent }} expired={false} />;
}
const user = aUser({ id: "u1", fullName: "Marie Désir", email: "marie@test.example", phoneNumber: "" });
const open = (answers: Partial<Answers> = {}) =>
  renderScreen(<Draft answers={answers} />, { session: { user }, at: "/?draft=draft-1" });

beforeEach(() => {
  sessionStorage.clear();
  lastIdentity.current = null;
});

it("a continued draft stays on its step while its last answer is typed", async () => {
  const { user } = open({ identity: { ...known, firstName: "Marie", lastName: "Désir", email: "marie@test.example" } });
  await user.type(await screen.findByLabelText("Details"), "We need food until my new job starts.");
  expect(screen.getByRole("heading", { level: 1 })).toHaveTextContent("Tell us what you need");
  await user.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByRole("heading", { name: "Check your answers" })).toBeInTheDocument();
});

it("a continued draft skips details known from the last request", async () => {
  lastIdentity.current = known;
  open();
  expect(await screen.findByLabelText("Details")).toBeInTheDocument();
});

it("a requester who agreed to texts finds the box ticked and can untick it", async () => {
  const { user } = renderScreen(<Draft answers={{}} textConsent />, { session: {}, at: "/?draft=draft-1" });
  const box = () => screen.findByRole("checkbox", { name: "Send me texts about my request, too." });
  expect(await box()).toBeChecked();
  await user.click(await box());
  expect(await box()).not.toBeChecked();
});

it("the summary mentions texts", async () => {
  open({
    identity: { ...known, firstName: "Marie", lastName: "Désir", email: "marie@test.example" },
    description: "We need food until my new job starts.",
    texts: true,
  });
  expect(await screen.findByText("Texts: yes")).toBeInTheDocument();
});

it("a signed-in user with all details skips from nonprofits to the need and can change them at the end", async () => {
  lastIdentity.current = known;
  const { user } = renderScreen(<Draft answers={{}} />, { session: {}, at: "/?draft=draft-1&step=nonprofits" });
  await user.click(await screen.findByRole("button", { name: "Continue" }));
  await user.type(await screen.findByLabelText("Details"), "We need food until my new job starts.");
  await user.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByRole("heading", { name: "Check your answers" })).toBeInTheDocument();
  for (const words of ["Marie Désir", "+1 207 555 0142", "18 Main Street"])
    expect(screen.getByText(words)).toBeInTheDocument();
  for (const what of ["Name", "Contact", "Address"])
    expect(screen.getByRole("link", { name: new RegExp(`^Change ?${what}$`) })).toHaveAttribute(
      "href",
      "/?draft=draft-1&step=info",
    );
  await user.click(screen.getByRole("link", { name: /^Change ?Contact$/ }));
  expect(await screen.findByLabelText("Phone")).toHaveValue("+1 207 555 0142");
});

it("what is known is filled in when the step is first shown", async () => {
  lastIdentity.current = { ...known, postalCode: "" };
  const { user } = open();
  // at once: an answer that came after the fields would find them empty
  expect(await screen.findByLabelText("Phone")).toHaveValue("+1 207 555 0142");
  expect(screen.getByLabelText("First name")).toHaveValue("Marie");
  expect(screen.getByLabelText("Email")).toHaveValue("marie@test.example");
  await user.click(screen.getByRole("button", { name: "Next" }));
  expect(await screen.findByLabelText("Street address")).toHaveValue("18 Main Street");
  expect(screen.getByLabelText("City")).toHaveValue("Portland");
  expect(screen.getByLabelText("Postal/ZIP code")).toHaveValue("");
});

it("after the answers are cleared, a signed-in user is identified again", async () => {
  lastIdentity.current = { ...known, postalCode: "" };
  const { user } = renderScreen(<NewRequest />, { session: {}, at: "/?step=category" });
  await user.click(await screen.findByRole("button", { name: /^Food Assistance/ }));
  await user.click(await screen.findByRole("button", { name: "Clear my answers" }));
  await user.click(within(screen.getByRole("alertdialog")).getByRole("button", { name: "Clear my answers" }));
  await user.click(await screen.findByRole("button", { name: /^Food Assistance/ }));
  await user.click(await screen.findByRole("button", { name: "Continue" }));
  expect(await screen.findByLabelText("Email")).toHaveValue("marie@test.example");
  expect(screen.getByLabelText("First name")).toHaveValue("Marie");
  expect(screen.getByLabelText("Phone")).toHaveValue("+1 207 555 0142");
});

it("a continued draft asks for missing details", async () => {
  open();
  expect(await screen.findByRole("heading", { name: "Your information" })).toBeInTheDocument();
});
