import { queryOptions } from "@tanstack/react-query";
import { screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { aUser } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { emptyAnswers, emptyIdentity, type Answers } from "../answers";
import type { Identity } from "../schema";
import { useAnswers } from "../use-answers";
import { Wizard } from "./wizard";

const lastIdentity = vi.hoisted(() => ({ current: null as object | null }));
vi.mock("../api", () => ({
  lastIdentityQuery: (userId: string) =>
    queryOptions({
      queryKey: ["identity", userId],
      queryFn: () => Promise.resolve(lastIdentity.current as Identity | null),
    }),
  saveDraft: () => Promise.resolve({ id: "draft-1", updated_at: "2026-01-01T00:00:00Z" }),
}));

const known: Identity = {
  ...emptyIdentity,
  phone: "+1 207 555 0142",
  address: "18 Main Street",
  city: "Portland",
  state: "ME",
  postalCode: "04101",
};

function Draft({ answers }: { answers: Partial<Answers> }) {
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
  return <Wizard state={state} user={user} expired={false} />;
}
const user = aUser({ id: "u1", fullName: "Marie Désir", email: "marie@test.example", phoneNumber: "" });
const open = (answers: Partial<Answers> = {}) =>
  renderScreen(<Draft answers={answers} />, { session: { user }, at: "/?draft=draft-1" });

beforeEach(() => {
  sessionStorage.clear();
  lastIdentity.current = null;
});

it("a continued draft stays on its step while the last answer of it is typed", async () => {
  const { user } = open({ identity: { ...known, firstName: "Marie", lastName: "Désir", email: "marie@test.example" } });
  await user.type(await screen.findByLabelText("Details"), "We need food until my new job starts.");
  expect(screen.getByRole("heading", { level: 1 })).toHaveTextContent("Tell us what you need");
  await user.click(screen.getByRole("button", { name: "Continue" }));
  expect(await screen.findByRole("heading", { name: "Check your answers" })).toBeInTheDocument();
});

it("a continued draft passes the details that the last request knows", async () => {
  lastIdentity.current = known;
  open();
  expect(await screen.findByLabelText("Details")).toBeInTheDocument();
});

it("a continued draft asks for the details that nobody knows", async () => {
  open();
  expect(await screen.findByRole("heading", { name: "Your information" })).toBeInTheDocument();
});
