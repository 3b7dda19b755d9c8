import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { act, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { currentToasts } from "@/lib/toast";
import { aUser } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { emptyAnswers, emptyIdentity, type Answers } from "../answers";
import type { Identity } from "../schema";
import type { Kept } from "../storage";
import { useAnswers } from "../use-answers";
import { Wizard } from "./wizard";

const submitRequest = vi.hoisted(() => vi.fn());
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
  submitRequest,
  saveDraft: () => Promise.resolve({ id: "draft-1", updated_at: "2026-01-01T00:00:00Z" }),
}));

vi.mock("@/lib/help-kinds-query", () => ({
  helpKindsQuery: queryOptions({
    queryKey: ["kinds"],
    queryFn: () => Promise.resolve([{ id: "cat-001", name: "Food Assistance", description: "Groceries" }]),
  }),
}));
/** Files never arrive. */
vi.mock("@/lib/request-documents", () => ({ uploadToRequest: () => new Promise(() => undefined) }));
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
  return <Wizard state={state} user={person} expired={false} />;
}
const account = { userId: "u1", draftId: null };

interface DraftProps {
  answers: Partial<Answers>;
  textConsent?: boolean;
  waits?: boolean;
}

function Draft({ answers, textConsent = false, waits = false }: DraftProps) {
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
      waits,
    },
    true,
  );
  return <Wizard state={state} user={{ ...person, textConsent }} expired={false} />;
}
const person = aUser({ id: "u1", fullName: "Marie Désir", email: "marie@test.example", phoneNumber: "" });
const open = (answers: Partial<Answers> = {}) =>
  renderScreen(<Draft answers={answers} />, { session: { user: person }, at: "/?draft=draft-1" });

beforeEach(() => {
  sessionStorage.clear();
  lastIdentity.current = null;
  submitRequest
    .mockReset()
    .mockResolvedValue({ request_number: "REQ-042", email: "m@mail.example", submitted_at: "2026-01-01T00:00:00Z" });
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

describe("a request that waits for a connection", () => {
  const whole: Partial<Answers> = {
    identity: { ...known, firstName: "Marie", lastName: "Désir", email: "marie@test.example" },
    description: "We need food until my new job starts.",
    consent: true,
  };
  const online = () => act(() => void window.dispatchEvent(new Event("online")));
  /** The page is opened without a connection. */
  const openOffline = async (step: string) => {
    const line = vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
    const { user } = renderScreen(<Draft answers={whole} waits />, {
      session: { user: person },
      at: `/?draft=draft-1&step=${step}`,
    });
    expect(await screen.findByText(/It goes by itself when the connection is back/)).toBeInTheDocument();
    line.mockRestore();
    return user;
  };

  it("is sent as it is when the connection is back", async () => {
    await openOffline("details");
    online();
    expect(await screen.findByText("REQ-042")).toBeInTheDocument();
    expect(submitRequest).toHaveBeenCalledOnce();
  });

  it("is not sent while it is being changed", async () => {
    const user = await openOffline("details");
    await user.type(screen.getByLabelText("Details"), " And");
    online();
    expect(await screen.findByText(/it does not go by itself anymore/)).toBeInTheDocument();
    expect(submitRequest).not.toHaveBeenCalled();
    await user.click(screen.getByRole("button", { name: "Continue" }));
    await user.click(await screen.findByRole("button", { name: "Submit Request" }));
    expect(await screen.findByText("REQ-042")).toBeInTheDocument();
  });

  it("is not sent without a file that is still on its way", async () => {
    const user = await openOffline("details");
    const input = document.querySelector<HTMLInputElement>("input[type=file]");
    await user.upload(input as HTMLInputElement, new File(["x"], "letter.pdf", { type: "application/pdf" }));
    online();
    expect(await screen.findByText(/it does not go by itself anymore/)).toBeInTheDocument();
    // the summary is one step ahead in the browser's history
    await user.click(screen.getByRole("button", { name: "Continue" }));
    expect(currentToasts()[0]).toMatchObject({ title: "Wait until your documents have arrived." });
    expect(submitRequest).not.toHaveBeenCalled();
  });
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

it.each([
  [true, "You were signed out for your safety"],
  [false, "You changed this draft on another device too"],
])("a change on another device is shown after the end of the session (ended: %s)", async (expired, title) => {
  const { key: _, ...answers } = { ...emptyAnswers("key-1"), draftId: "draft-1", description: "Typed there." };
  const meanwhile = { answers, updatedAt: "2026-01-01T00:05:00Z", gone: 0 };
  function Changed() {
    const state = useAnswers(account, noAnswers, !expired);
    return <Wizard state={{ ...state, meanwhile }} user={expired ? null : person} expired={expired} />;
  }
  renderScreen(<Changed />, { session: { user: expired ? null : person } });
  expect(await screen.findByRole("alert")).toHaveTextContent(title);
});
