import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { queryClient } from "@/lib/query-client";
import { aUser } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { emptyAnswers, emptyIdentity, type Answers } from "../answers";
import type { LoadedDraft } from "../api";
import { keep, readKept, type Kept } from "../storage";
import { WholeForm } from "./whole-form";

const server = vi.hoisted(() => ({ draft: null as LoadedDraft | null, saved: [] as Answers[], submit: vi.fn() }));
vi.mock("../api", () => ({
  draftQuery: (id: string) =>
    queryOptions({ queryKey: ["draft", id], queryFn: () => Promise.resolve(server.draft), gcTime: 0 }),
  lastIdentityQuery: (userId: string) =>
    queryOptions({ queryKey: ["identity", userId], queryFn: () => Promise.resolve(null) }),
  directoryQuery: () =>
    infiniteQueryOptions({
      queryKey: ["directory"],
      queryFn: () => Promise.resolve({ rows: [], total: 0 }),
      initialPageParam: 0,
      getNextPageParam: () => undefined,
    }),
  saveDraft: (answers: Answers) => {
    server.saved.push(answers);
    return Promise.resolve({ id: "draft-1", updated_at: "2026-01-01T00:00:00Z" });
  },
  submitRequest: server.submit,
}));
vi.mock("@/lib/help-kinds-query", () => ({
  helpKindsQuery: queryOptions({
    queryKey: ["kinds"],
    queryFn: () => Promise.resolve([{ id: "cat-001", name: "Food Assistance", description: "Groceries" }]),
  }),
}));
vi.mock("@/lib/offline-shell", () => ({ keepShell: () => undefined }));
vi.mock("@/lib/env", () => ({ useAppConfig: () => ({ sms: true }) }));

const GUEST = { userId: null, draftId: null };
const marie = aUser({ id: "u1", email: "marie@mail.example" });
const kept = (patch: Partial<Answers> = {}, more: Partial<Kept> = {}): Kept => ({
  answers: {
    ...emptyAnswers("key-1"),
    category: { id: "cat-001", name: "Food Assistance" },
    nonprofits: [{ id: "np-001", name: "Harbor Relief Fund" }],
    description: "Paul has lost his home.",
    consent: true,
    ...patch,
  },
  dirty: true,
  syncedAt: null,
  sent: null,
  ...more,
});
const open = (at = "/submit-request") =>
  renderScreen(<WholeForm />, { session: { user: marie }, at, path: "/submit-request" });

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  queryClient.clear();
  Object.assign(server, { draft: null, saved: [] });
  server.submit.mockReset().mockReturnValue(new Promise(() => undefined));
});

describe("a guest's request on this device when somebody signs in", () => {
  const pauls = { identity: { ...emptyIdentity, firstName: "Paul", email: "paul@mail.example" } };
  const question = "Someone began a request on this device. Is it yours?";

  it("is neither shown nor saved nor sent before the person says that it is theirs", async () => {
    keep(GUEST, kept(pauls, { waits: true }));
    open("/submit-request?step=review");
    expect(await screen.findByRole("heading", { name: question })).toBeInTheDocument();
    expect(document.body).not.toHaveTextContent("Paul");
    expect(sessionStorage).toHaveLength(0);
    expect([server.saved.length, server.submit.mock.calls.length]).toEqual([0, 0]);
  });

  it("continues in the account if it is theirs, but is not sent by itself", async () => {
    keep(GUEST, kept(pauls, { waits: true }));
    const { user } = open("/submit-request?step=details");
    await user.click(await screen.findByRole("button", { name: "Yes, it is mine" }));
    expect(await screen.findByText(/it does not go by itself anymore/)).toBeInTheDocument();
    expect(screen.getByRole("main")).toHaveFocus();
    expect(readKept(GUEST)).toBeNull();
    await waitFor(() =>
      expect(readKept({ userId: "u1", draftId: null })?.answers).toMatchObject({
        description: "Paul has lost his home.",
        identity: { email: "marie@mail.example" },
      }),
    );
    expect(server.submit).not.toHaveBeenCalled();
  });

  it("stays the guest's if it is not theirs", async () => {
    keep(GUEST, kept(pauls));
    const { user, unmount } = open();
    await user.click(await screen.findByRole("button", { name: "No, start a new one" }));
    expect(await screen.findByRole("heading", { name: "Choose type of assistance" })).toBeInTheDocument();
    expect(screen.queryByText("You have a request that is not sent yet")).toBeNull();
    expect(readKept(GUEST)?.answers.identity.firstName).toBe("Paul");
    unmount();
    open();
    expect(await screen.findByRole("heading", { name: "Choose type of assistance" })).toBeInTheDocument();
  });

  it("moves into the account without a question if it names their address or none, and is not sent by itself", async () => {
    for (const email of ["", "Marie@mail.example "]) {
      keep(GUEST, kept({ identity: { ...emptyIdentity, email } }, { waits: true }));
      const { unmount } = open("/submit-request?step=nonprofits");
      expect(await screen.findByText(/it does not go by itself anymore/)).toBeInTheDocument();
      expect(readKept(GUEST)).toBeNull();
      expect(server.submit).not.toHaveBeenCalled();
      unmount();
      sessionStorage.clear();
    }
  });
});

describe("a saved draft", () => {
  const identity = {
    firstName: "Marie",
    lastName: "Désir",
    email: marie.email,
    phone: "+1 207 555 0142",
    address: "18 Main Street",
    city: "Portland",
    state: "ME",
    postalCode: "04101",
  };
  const { key: _, ...saved } = kept({ draftId: "d1", identity, description: "From the account" }).answers;
  const draft: LoadedDraft = { answers: saved, updatedAt: "2026-01-01T00:00:00Z", gone: 0 };
  const OF_DRAFT = { userId: "u1", draftId: "d1" };

  it.each(["wizard", "single"])("that was sent shows its confirmation after a reload (%s)", async (form) => {
    keep(OF_DRAFT, {
      ...kept({ ...emptyAnswers("key-2") }),
      sent: { number: "REQ-042", email: "marie@mail.example", nonprofits: ["Harbor"], at: "2026-11-20T10:00:00Z" },
    });
    for (const step of ["&step=sent", "&step=review", ""]) {
      const { unmount } = open(`/submit-request?draft=d1&form=${form}${step}`);
      expect(await screen.findByTestId("request-number")).toHaveTextContent("REQ-042");
      unmount();
      queryClient.clear();
    }
  });

  it("that was sent does not hide the request that was begun after it", async () => {
    keep(OF_DRAFT, kept({ identity, description: "Another need" }));
    open("/submit-request?draft=d1&step=details");
    expect(await screen.findByLabelText("Details")).toHaveValue("Another need");
  });

  it("that was deleted is not shown again", async () => {
    keep(OF_DRAFT, kept({ draftId: "d1" }));
    open("/submit-request?draft=d1");
    expect(await screen.findByRole("heading", { name: "This draft is not here anymore" })).toBeInTheDocument();
  });

  it.each(["wizard", "single"])(
    "is left by 'Clear my answers', so that the old text does not come back (%s)",
    async (form) => {
      server.draft = draft;
      const { user, router } = open(`/submit-request?draft=d1&step=details&form=${form}`);
      expect(await screen.findByLabelText("Details")).toHaveValue("From the account");
      await user.click(screen.getByRole("button", { name: "Clear my answers" }));
      const dialog = within(screen.getByRole("alertdialog"));
      await user.click(dialog.getByRole("button", { name: "Clear my answers" }));
      const first = form === "single" ? "Submit Aid Request" : "Choose type of assistance";
      expect(await screen.findByRole("heading", { name: first })).toBeInTheDocument();
      await waitFor(() => expect(router.state.location.search).not.toContain("draft"));
      expect(screen.getByRole("main")).toHaveFocus();
      expect(screen.queryByDisplayValue("From the account")).toBeNull();
      expect(readKept(OF_DRAFT)).toBeNull();
    },
  );
});
