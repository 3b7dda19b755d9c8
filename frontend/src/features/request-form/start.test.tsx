import { beforeEach, describe, expect, it, vi } from "vitest";
import { forgetOldAnswers, unsentRequest } from "@/lib/stored";
import { emptyAnswers, type Answers } from "./answers";
import { keptAfterDraft, keptOfDraft, startFromDraft, startHere } from "./start";
import { forget, isOthersDevice, keep, leaveNothingHere, readKept, type Kept } from "./storage";

const answers = (patch: Partial<Answers> = {}): Answers => ({
  ...emptyAnswers("key-1"),
  description: "Typed words",
  ...patch,
});
const kept = (patch: Partial<Kept> = {}): Kept => ({
  answers: answers(),
  dirty: true,
  syncedAt: null,
  sent: null,
  ...patch,
});

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

describe("the browser's copy", () => {
  it("stays in the browser when signed out and in the tab when signed in", () => {
    keep({ userId: null, draftId: null }, kept());
    expect(localStorage).toHaveLength(1);
    keep({ userId: "u1", draftId: null }, kept());
    expect(localStorage).toHaveLength(1);
    expect(sessionStorage).toHaveLength(1);
  });

  it("is never used by another account", () => {
    keep({ userId: "u1", draftId: null }, kept());
    expect(readKept({ userId: "u2", draftId: null })).toBeNull();
    expect(readKept({ userId: null, draftId: null })).toBeNull();
  });

  it("survives unreadable data", () => {
    localStorage.setItem("aidbridge-request:guest:new", "{broken");
    expect(readKept({ userId: null, draftId: null })).toBeNull();
    localStorage.setItem("aidbridge-request:guest:new", JSON.stringify({ version: 0, answers: { key: "k" } }));
    expect(readKept({ userId: null, draftId: null })).toBeNull();
  });

  it("expires after a day without a change, for guests only", () => {
    vi.useFakeTimers();
    const slots = [
      { userId: null, draftId: null },
      { userId: "u1", draftId: null },
    ];
    for (const slot of slots) keep(slot, kept());
    vi.advanceTimersByTime(24 * 60 * 60_000);
    expect(slots.map((slot) => readKept(slot)?.answers.description)).toEqual(["Typed words", "Typed words"]);
    vi.advanceTimersByTime(1);
    expect(slots.map((slot) => readKept(slot)?.answers.description)).toEqual([undefined, "Typed words"]);
    expect(localStorage).toHaveLength(0);
    vi.useRealTimers();
  });

  it("expires even if the form is not opened again", () => {
    vi.useFakeTimers();
    const guest = { userId: null, draftId: null };
    localStorage.setItem("theme", "dark");
    keep(guest, kept());
    vi.advanceTimersByTime(24 * 60 * 60_000);
    forgetOldAnswers();
    expect(readKept(guest)).not.toBeNull();
    vi.advanceTimersByTime(1);
    forgetOldAnswers();
    expect(Object.keys(localStorage)).toEqual(["theme"]);
    localStorage.setItem("aidbridge-request:guest:new", "{broken");
    forgetOldAnswers();
    expect(Object.keys(localStorage)).toEqual(["theme"]);
    vi.useRealTimers();
  });

  it("says for a week that a request was never sent because its answers expired", () => {
    vi.useFakeTimers();
    const guest = { userId: null, draftId: null };
    keep(guest, kept());
    expect(unsentRequest()).toBeNull();
    keep(guest, { ...kept(), waits: true });
    expect(unsentRequest()).toBe("waits");
    vi.advanceTimersByTime(24 * 60 * 60_000 + 1);
    forgetOldAnswers();
    expect(unsentRequest()).toBe("deleted");
    // nothing of the person is left
    expect(JSON.stringify(localStorage)).not.toContain("Typed words");
    vi.advanceTimersByTime(7 * 24 * 60 * 60_000);
    expect(unsentRequest()).toBeNull();

    keep(guest, { ...kept(), waits: true });
    vi.advanceTimersByTime(24 * 60 * 60_000 + 1);
    expect(readKept(guest)).toBeNull();
    expect(unsentRequest()).toBe("deleted");
    vi.useRealTimers();
  });

  it("is removed when cleared", () => {
    keep({ userId: null, draftId: null }, kept());
    forget({ userId: null, draftId: null });
    expect(readKept({ userId: null, draftId: null })).toBeNull();
  });
});

describe("opening the form", () => {
  it("starts with a new key when nothing is saved", () => {
    const first = startHere(null, "wizard");
    expect(first.answers.key).toMatch(/^[0-9a-f-]{36}$/);
    expect(first.answers.key).not.toBe(startHere(null, "wizard").answers.key);
  });

  it("continues a guest's answers with their key", () => {
    keep({ userId: null, draftId: null }, kept());
    expect(startHere(null, "wizard").answers).toMatchObject({ key: "key-1", description: "Typed words" });
  });

  it("continues a draft as it was left last, here or at its own address", () => {
    vi.useFakeTimers();
    const leave = (draftId: string | null, description: string, dirty: boolean) => {
      vi.advanceTimersByTime(1_000);
      keep({ userId: "u1", draftId }, kept({ answers: answers({ draftId: "d1", description }), dirty }));
    };
    leave(null, "Begun here", true);
    leave("d1", "Saved there", false);
    expect(startHere("u1", "wizard").answers.description).toBe("Saved there");
    leave("d1", "Not saved there", true);
    leave(null, "Typed here since", true);
    expect(startHere("u1", "wizard").answers.description).toBe("Typed here since");
    vi.useRealTimers();
  });

  it("takes nothing of a guest into an account by itself", () => {
    keep({ userId: null, draftId: null }, kept());
    expect(startHere("u1", "wizard").answers.description).toBe("");
  });
});

describe("opening a saved draft", () => {
  const { key: _, ...saved } = answers({ draftId: "d1", description: "From the account" });
  const draft = { answers: saved, updatedAt: "2026-11-20T10:00:00Z", gone: 0 };

  it("shows the account's answers when the browser has none", () => {
    expect(startFromDraft(null, draft).answers.description).toBe("From the account");
  });

  it("prefers this browser's unsaved answers", () => {
    const local = kept({
      answers: answers({ draftId: "d1", description: "Not saved yet" }),
      syncedAt: "2026-11-20T09:00:00Z",
    });
    expect(startFromDraft(local, draft).answers.description).toBe("Not saved yet");
  });

  it("uses the account's draft when it was changed elsewhere, under the same key", () => {
    const local = kept({ answers: answers({ draftId: "d1" }), dirty: false, syncedAt: "2026-11-20T09:00:00Z" });
    expect(startFromDraft(local, draft).answers).toMatchObject({ key: "key-1", description: "From the account" });
  });

  it("finds the copy in the browser where the draft was started", () => {
    keep({ userId: "u1", draftId: null }, kept({ answers: answers({ draftId: "d1" }) }));
    expect(keptOfDraft("u1", "d1")?.answers.draftId).toBe("d1");
    expect(keptOfDraft("u1", "d2")).toBeNull();
  });
});

describe("what is kept at a draft's address once the draft is gone", () => {
  const slot = { userId: "u1", draftId: "d1" };
  const sent = { number: "REQ-007", email: "m@mail.example", nonprofits: ["Harbor"], at: "2026-11-20T10:00:00Z" };

  it("is the confirmation of its sending", () => {
    keep(slot, kept({ answers: emptyAnswers("key-2"), sent }));
    expect(keptAfterDraft("u1", "d1")?.sent).toEqual(sent);
    expect(keptAfterDraft("u1", "d2")).toBeNull();
  });

  it("is the next request, but not the deleted draft itself", () => {
    keep(slot, kept({ answers: answers({ draftId: "d2" }) }));
    expect(keptAfterDraft("u1", "d1")?.answers.draftId).toBe("d2");
    keep(slot, kept({ answers: answers({ draftId: "d1" }) }));
    expect(keptAfterDraft("u1", "d1")).toBeNull();
  });
});

describe("a shared phone", () => {
  const guest = { userId: null, draftId: null };

  it("keeps a guest's answers in the tab from then on and moves earlier ones there", () => {
    keep(guest, kept());
    expect(leaveNothingHere(guest)).toBe(true);
    expect(JSON.stringify(localStorage)).not.toContain("Typed words");
    expect(readKept(guest)?.answers.description).toBe("Typed words");
    keep(guest, kept({ answers: answers({ description: "And more" }) }));
    expect(localStorage).toHaveLength(0);
    expect(startHere(null, "wizard").answers.description).toBe("And more");
    // the tab is closed
    sessionStorage.clear();
    expect(isOthersDevice()).toBe(false);
    expect(readKept(guest)).toBeNull();
  });
});
