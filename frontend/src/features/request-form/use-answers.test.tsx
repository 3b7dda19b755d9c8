import { act, renderHook, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { unsentRequest } from "@/lib/stored";
import { currentToasts } from "@/lib/toast";
import { emptyAnswers, type Answers } from "./answers";
import { readDraft, saveDraft, type LoadedDraft } from "./api";
import { readKept, type Kept, type Slot } from "./storage";
import { useAnswers } from "./use-answers";

vi.mock("./api", () => ({ saveDraft: vi.fn(), readDraft: vi.fn() }));

const guest: Slot = { userId: null, draftId: null };
const account: Slot = { userId: "u1", draftId: null };
const food = { id: "cat-001", name: "Food Assistance" };

const kept = (patch: Partial<Answers> = {}): Kept => ({
  answers: { ...emptyAnswers("k1"), ...patch },
  dirty: false,
  syncedAt: null,
  sent: null,
});
const start = (slot: Slot, initial = kept()) =>
  renderHook(() => useAnswers(slot, initial, slot.userId !== null)).result;

/** Saves that wait to be ended by the test, in the order in which they began. */
const saves: {
  answers: Answers;
  seen: string | null;
  arrive: (id: string) => void;
  fail: (error: unknown) => void;
}[] = [];

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  saves.length = 0;
  vi.mocked(readDraft).mockReset().mockResolvedValue(null);
  vi.mocked(saveDraft).mockImplementation(
    (answers, _step, seen) =>
      new Promise((arrive, fail) => {
        const row = (id: string) => arrive({ id, updated_at: "2026-11-20T10:00:00Z" } as never);
        saves.push({ answers, seen, arrive: row, fail });
      }),
  );
});
afterEach(() => vi.useRealTimers());

it("saves a guest's answers in the browser on every change and says so", () => {
  const state = start(guest);
  act(() => state.current.change({ category: food, description: "We need food." }));
  expect(readKept(guest)?.answers).toMatchObject({ key: "k1", description: "We need food." });
  expect(state.current.saving).toEqual({ state: "browser" });
  expect(saveDraft).not.toHaveBeenCalled();
});

it("keeps a guest's name across a reload when it is the first answer", () => {
  const state = start(guest);
  act(() => state.current.change({ identity: { ...emptyAnswers("k1").identity, firstName: "Marie" } }));
  expect(readKept(guest)?.answers.identity.firstName).toBe("Marie");
  expect(state.current.saving).toEqual({ state: "browser" });
  act(() => state.current.change({ identity: emptyAnswers("k1").identity }));
  expect(localStorage).toHaveLength(0);
});

it("does not save prefilled account data as answers", () => {
  const state = start(account);
  act(() => state.current.change({ identity: { ...emptyAnswers("k1").identity, firstName: "Marie" } }));
  expect(readKept(account)).toBeNull();
});

it("on a shared phone answers stay in the tab from then on", () => {
  const state = start(guest);
  act(() => state.current.change({ description: "We need food." }));
  act(() => state.current.keepInTab());
  act(() => state.current.change({ amount: "250" }));
  expect(localStorage).toHaveLength(0);
  expect(readKept(guest)?.answers).toMatchObject({ description: "We need food.", amount: "250" });
  expect(state.current.tabOnly).toBe(true);
});

it("saves an account's answers when typing pauses, and later changes in the same draft", async () => {
  vi.useFakeTimers();
  const state = start(account);
  act(() => state.current.change({ category: food }));
  act(() => state.current.change({ description: "We need" }));
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  expect(saves.map(({ answers }) => answers.description)).toEqual(["We need"]);
  act(() => state.current.change({ description: "We need food." }));
  await act(async () => saves[0]?.arrive("d1"));
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  expect(saves[1]?.answers).toMatchObject({ description: "We need food.", draftId: "d1" });
  await act(async () => saves[1]?.arrive("d1"));
  expect(state.current.saving.state).toBe("account");
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  expect(saves).toHaveLength(2);
});

it("queues concurrent saves so that the second updates the first's draft", async () => {
  const state = start(account, kept({ category: food }));
  let ids: Promise<string[]> = Promise.resolve([]);
  act(() => void (ids = Promise.all([state.current.save(), state.current.save()])));
  await waitFor(() => expect(saves).toHaveLength(1));
  await act(async () => saves[0]?.arrive("d1"));
  await waitFor(() => expect(saves).toHaveLength(2));
  expect(saves[1]?.answers.draftId).toBe("d1");
  await act(async () => saves[1]?.arrive("d1"));
  expect(await ids).toEqual(["d1", "d1"]);
});

it("reports a failed save, keeps the answers and retries when online", async () => {
  vi.useFakeTimers();
  const state = start(account);
  act(() => state.current.change({ category: food, description: "We need food." }));
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  await act(async () => saves[0]?.fail(new TypeError("Failed to fetch")));
  expect(state.current.saving.state).toBe("failed");
  expect(readKept(account)?.answers.description).toBe("We need food.");
  await act(async () => void window.dispatchEvent(new Event("online")));
  expect(saves).toHaveLength(2);
});

it("a save that ends after sending or clearing does not restore the draft", async () => {
  const state = start(account, kept({ category: food }));
  let saved: Promise<string> = Promise.resolve("");
  act(() => void (saved = state.current.save()));
  await waitFor(() => expect(saves).toHaveLength(1));
  const sent = { number: "REQ-007", email: "m@mail.example", nonprofits: ["Harbor"], at: "2026-11-20T10:00:00Z" };
  act(() => state.current.finish(sent));
  await act(async () => saves[0]?.arrive("d1"));
  await saved;
  expect(state.current).toMatchObject({ sent, answers: { category: null, draftId: null } });
  expect(state.current.answers.key).not.toBe("k1");
  expect(readKept(account)?.sent).toEqual(sent);
});

describe("a draft that was deleted elsewhere", () => {
  const gone = { code: "PT404", message: "The requested aid request could not be found.", hint: "request_not_found" };
  const file = (id: string, slot: boolean) => ({ id, name: `${id}.pdf`, size: 1, path: id, slot });

  it("is saved again under the request's key", async () => {
    const state = start(account, kept({ category: food, draftId: "d1", description: "We need food." }));
    let saved: Promise<string> = Promise.resolve("");
    act(() => void (saved = state.current.save()));
    await waitFor(() => expect(saves).toHaveLength(1));
    await act(async () => saves[0]?.fail(gone));
    await waitFor(() => expect(saves).toHaveLength(2));
    expect(saves[1]?.answers).toMatchObject({ key: "k1", draftId: null, description: "We need food." });
    await act(async () => saves[1]?.arrive("d2"));
    expect(await saved).toBe("d2");
    expect(state.current).toMatchObject({ answers: { draftId: "d2" }, saving: { state: "account" } });
  });

  it("takes its documents with it, and the person is told", () => {
    const documents = [file("stored", false), file("uploaded-as-guest", true)];
    const state = start(account, { ...kept({ category: food, draftId: "d1", documents }), waits: true });
    act(() => state.current.leaveDraft("d1"));
    expect(state.current.answers.documents.map(({ id }) => id)).toEqual(["uploaded-as-guest"]);
    // what was to be sent had the document
    expect(state.current.waits).toBe(false);
    expect(currentToasts()[0]).toMatchObject({ title: "Please add your documents again", open: true });
  });

  it("is not saved again if the answers were cleared meanwhile", async () => {
    const state = start(account, kept({ category: food, draftId: "d1" }));
    let saved: Promise<string> = Promise.resolve("");
    act(() => void (saved = state.current.save()));
    await waitFor(() => expect(saves).toHaveLength(1));
    act(() => state.current.clear());
    await act(async () => saves[0]?.fail(gone));
    await expect(saved).rejects.toBe(gone);
    expect(saves).toHaveLength(1);
  });
});

describe("a draft that is open on two devices", () => {
  const own: Slot = { userId: "u1", draftId: "d1" };
  const draft = (description: string, at: string): Kept => ({
    ...kept({ category: food, draftId: "d1", description }),
    syncedAt: at,
  });
  const there = (description: string, at: string): LoadedDraft => {
    const { key: _, ...answers } = draft(description, at).answers;
    return { answers, updatedAt: at, gone: 0 };
  };
  const changed = { code: "PT409", message: "This draft was changed on another device.", hint: "draft_changed" };

  /** What was typed here is refused, because the other device saved `theirs`. */
  async function refused(theirs: LoadedDraft, initial = draft("We need food.", "10:00")) {
    vi.mocked(readDraft).mockResolvedValue(theirs);
    const state = start(own, initial);
    act(() => state.current.change({ description: "We need food, typed here." }));
    act(() => void state.current.save().catch(() => undefined));
    await waitFor(() => expect(saves).toHaveLength(1));
    expect(saves[0]?.seen).toBe("10:00");
    await act(async () => saves[0]?.fail(changed));
    return state;
  }

  it("loses neither version, and saves nothing until the person chooses", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const state = await refused(there("We need rent, typed there.", "10:05"));
    await waitFor(() => expect(state.current.meanwhile?.answers.description).toBe("We need rent, typed there."));
    act(() => state.current.change({ amount: "250" }));
    await act(() => vi.advanceTimersByTimeAsync(5_000));
    expect(saves).toHaveLength(1);
    expect(readKept(own)?.answers).toMatchObject({ description: "We need food, typed here.", amount: "250" });
  });

  it("is told by a toast if it was found while the page saved by itself", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    vi.mocked(readDraft).mockResolvedValue(there("We need rent, typed there.", "10:05"));
    const state = start(own, draft("We need food.", "10:00"));
    act(() => state.current.change({ description: "We need food, typed here." }));
    await act(() => vi.advanceTimersByTimeAsync(5_000));
    await act(async () => saves[0]?.fail(changed));
    await waitFor(() => expect(state.current.meanwhile).not.toBeNull());
    expect(currentToasts()[0]?.title).toBe("You changed this draft on another device too");
  });

  it("continues with what was typed here", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const state = await refused(there("We need rent, typed there.", "10:05"));
    await waitFor(() => expect(state.current.meanwhile).not.toBeNull());
    act(() => state.current.settle("mine"));
    await act(() => vi.advanceTimersByTimeAsync(5_000));
    expect(saves[1]).toMatchObject({ answers: { description: "We need food, typed here." }, seen: "10:05" });
    expect(state.current).toMatchObject({ meanwhile: null, version: 0 });
  });

  it("continues with what was typed there, in fields that show it", async () => {
    const state = await refused(there("We need rent, typed there.", "10:05"));
    await waitFor(() => expect(state.current.meanwhile).not.toBeNull());
    act(() => state.current.settle("theirs"));
    expect(state.current).toMatchObject({ meanwhile: null, version: 1 });
    expect(state.current.answers).toMatchObject({ key: "k1", description: "We need rent, typed there." });
    expect(readKept(own)).toMatchObject({ dirty: false, syncedAt: "10:05" });
  });

  it("is saved without a question if the draft is as this page saved it, though the answer was lost", async () => {
    const state = start(own, draft("We need food.", "10:00"));
    act(() => state.current.change({ description: "We need food, first try." }));
    act(() => void state.current.save().catch(() => undefined));
    await waitFor(() => expect(saves).toHaveLength(1));
    await act(async () => saves[0]?.fail(new TypeError("Failed to fetch")));
    vi.mocked(readDraft).mockResolvedValue(there("We need food, first try.", "10:05"));
    act(() => state.current.change({ description: "We need food, second try." }));
    act(() => void state.current.save());
    await waitFor(() => expect(saves).toHaveLength(2));
    await act(async () => saves[1]?.fail(changed));
    await waitFor(() => expect(saves).toHaveLength(3));
    expect(saves[2]).toMatchObject({ answers: { description: "We need food, second try." }, seen: "10:05" });
    await act(async () => saves[2]?.arrive("d1"));
    expect(state.current).toMatchObject({ meanwhile: null, saving: { state: "account" } });
  });

  it("is saved without a question after a reload, too", async () => {
    const before = start(own, draft("We need food.", "10:00"));
    act(() => before.current.change({ description: "We need food, first try." }));
    act(() => void before.current.save().catch(() => undefined));
    await waitFor(() => expect(saves).toHaveLength(1));
    const found = readKept(own);
    expect(found?.dirty).toBe(true);
    vi.mocked(readDraft).mockResolvedValue(there("We need food, first try.", "10:05"));
    const state = start(own, found ?? undefined);
    act(() => state.current.change({ description: "We need food, second try." }));
    act(() => void state.current.save());
    await waitFor(() => expect(saves).toHaveLength(2));
    await act(async () => saves[1]?.fail(changed));
    await waitFor(() => expect(saves).toHaveLength(3));
    expect(saves[2]?.seen).toBe("10:05");
    expect(state.current.meanwhile).toBeNull();
  });

  it("is read again when the window gets the focus, unless something was typed here", async () => {
    vi.mocked(readDraft).mockResolvedValue(there("We need rent, typed there.", "10:05"));
    const state = start(own, draft("We need food.", "10:00"));
    await act(async () => void window.dispatchEvent(new Event("focus")));
    await waitFor(() => expect(state.current.answers.description).toBe("We need rent, typed there."));
    expect(state.current.version).toBe(1);
    expect(currentToasts()[0]).toMatchObject({ title: "Your draft was updated", open: true });
    vi.mocked(readDraft).mockResolvedValue(there("We need rent soon.", "10:07"));
    await act(async () => void document.dispatchEvent(new Event("visibilitychange")));
    await waitFor(() => expect(state.current.answers.description).toBe("We need rent soon."));
    vi.mocked(readDraft).mockResolvedValue(there("We need more rent.", "10:09"));
    act(() => state.current.change({ amount: "250" }));
    await act(async () => void window.dispatchEvent(new Event("focus")));
    expect(state.current.answers).toMatchObject({ description: "We need rent soon.", amount: "250" });
  });
});

describe("answers that wait to be sent", () => {
  it("are not replaced by what another device saved, and wait no longer if the person takes that", async () => {
    const { key: _, ...answers } = kept({ category: food, draftId: "d1", description: "We need rent." }).answers;
    vi.mocked(readDraft).mockResolvedValue({ answers, updatedAt: "10:05", gone: 0 });
    const mine = kept({ category: food, draftId: "d1", description: "We need food." });
    const state = start(account, { ...mine, syncedAt: "10:00", waits: true });
    await act(async () => void window.dispatchEvent(new Event("focus")));
    expect(state.current).toMatchObject({ waits: true, answers: { description: "We need food." } });
    await act(async () => void (await state.current.meet("d1")));
    act(() => state.current.settle("theirs"));
    expect(state.current).toMatchObject({ waits: false, stopped: true, answers: { description: "We need rent." } });
  });

  const person = { ...emptyAnswers("k1").identity, email: "m@mail.example" };
  const waiting = () => start(guest, { ...kept({ category: food, description: "We need food." }), waits: true });

  it("no longer go by themselves once they are changed, and the person is told", () => {
    const state = waiting();
    act(() => state.current.change({ description: "We need food and" }));
    expect(state.current).toMatchObject({ waits: false, stopped: true });
    expect(readKept(guest)).toMatchObject({ stopped: true, answers: { description: "We need food and" } });
    expect(readKept(guest)?.waits).toBeUndefined();
    expect(currentToasts()[0]).toMatchObject({ title: "Not sent yet", open: true });
    expect(unsentRequest()).toBe("stopped");
  });

  it("still wait when the page fills something in or repeats what is there", () => {
    const state = waiting();
    act(() => state.current.fill({ form: "single", identity: person }));
    // what a form says when it is shown
    act(() =>
      state.current.change({ description: "We need food.", texts: false, nonprofits: [], identity: { ...person } }),
    );
    expect(state.current).toMatchObject({ waits: true, stopped: false });
  });

  it("do not begin to wait if they were changed while they were on their way", () => {
    const state = start(guest, kept({ category: food, description: "We need food." }));
    const tried = state.current.answers;
    act(() => state.current.change({ description: "We need food and" }));
    act(() => state.current.setWaits(true, tried));
    expect(state.current).toMatchObject({ waits: false, stopped: true });
    act(() => state.current.setWaits(true, state.current.answers));
    expect(state.current).toMatchObject({ waits: true, stopped: false });
  });
});

it("clearing the answers removes everything from the browser", () => {
  const state = start(guest, kept({ category: food, description: "We need food." }));
  act(() => state.current.clear());
  expect(state.current.answers).toMatchObject({ category: null, description: "", documents: [] });
  // an upload that is still under way belongs to the old key: use-documents.ts
  expect(state.current.answers.key).not.toBe("k1");
  expect(localStorage).toHaveLength(0);
});

it("changing the email ends the verified link to the account", () => {
  const linked = { id: "u9", fullName: "Marie", email: "m@mail.example", proof: "p" };
  const identity = { ...emptyAnswers("k1").identity, email: "m@mail.example" };
  const state = start(guest, kept({ category: food, identity, account: linked }));
  act(() => state.current.change({ identity: { ...identity, phone: "+1 207 555 0142" } }));
  expect(state.current.answers.account).toEqual(linked);
  act(() => state.current.change({ identity: { ...identity, email: "other@mail.example" } }));
  expect(state.current.answers.account).toBeNull();
});

it("another request has a new key and none of the first one's files", () => {
  const document = { id: "d", name: "a.pdf", size: 1, path: "guest/a.pdf", slot: true };
  const state = start(guest, kept({ category: food, documents: [document], description: "We need food." }));
  act(() => state.current.renew());
  expect(state.current.answers).toMatchObject({ description: "We need food.", documents: [], draftId: null });
  expect(state.current.answers.key).not.toBe("k1");
});
