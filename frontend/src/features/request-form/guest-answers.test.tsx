import { beforeEach, describe, expect, it } from "vitest";
import { forgetTypedBy } from "@/lib/stored";
import { emptyAnswers, emptyIdentity, type Answers } from "./answers";
import { adopt, guestAnswers, leaveToGuest } from "./guest-answers";
import { keep, readKept, type Kept } from "./storage";

const GUEST = { userId: null, draftId: null };
const OWN = { userId: "u1", draftId: null };
const marie = { id: "u1", email: "Marie@mail.example" };

const kept = (patch: Partial<Answers> = {}, more: Partial<Kept> = {}): Kept => ({
  answers: { ...emptyAnswers("key-1"), description: "Typed words", ...patch },
  dirty: true,
  syncedAt: null,
  sent: null,
  ...more,
});
const named = (email: string) => ({ identity: { ...emptyIdentity, email } });

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

describe("a guest's answers on the device of somebody who signs in", () => {
  it.each([
    ["", true],
    ["   ", true],
    [" marie@MAIL.example ", true],
    ["paul@mail.example", false],
    ["marie@mail.exampl", false],
  ])("with the address %j: theirs is %s", (email, theirs) => {
    keep(GUEST, kept(named(email)));
    expect(guestAnswers(marie)?.theirs).toBe(theirs);
  });

  it("are theirs if a name alone was typed", () => {
    const identity = { ...emptyIdentity, firstName: "Marie" };
    keep(GUEST, kept({ ...emptyAnswers("key-2", "single"), identity }));
    expect(guestAnswers(marie)).toMatchObject({ theirs: true, kept: { answers: { identity } } });
  });

  it("are nothing to ask about if nothing was typed, or if the account has its own", () => {
    expect(guestAnswers(marie)).toBeNull();
    keep(GUEST, kept(emptyAnswers("key-1")));
    expect(guestAnswers(marie)).toBeNull();
    keep(GUEST, kept());
    keep(OWN, kept({ description: "Mine, signed in" }));
    expect(guestAnswers(marie)).toBeNull();
  });

  it("move into the account once", () => {
    const account = { id: "u9", fullName: "Marie", email: "m@mail.example", proof: "p" };
    keep(GUEST, kept({ account }));
    expect(adopt("u1", kept({ account }))).toMatchObject({
      dirty: true,
      answers: { description: "Typed words", account: null },
    });
    expect(readKept(OWN)?.answers.description).toBe("Typed words");
    expect(readKept(GUEST)).toBeNull();
    expect(guestAnswers({ id: "u2", email: "" })).toBeNull();
  });

  it("are not sent by themselves from the account", () => {
    const adopted = adopt("u1", kept({}, { waits: true }));
    expect(adopted.waits).toBeUndefined();
    expect(adopted.stopped).toBe(true);
    expect(readKept(OWN)).toMatchObject({ stopped: true });
    expect(readKept(OWN)?.waits).toBeUndefined();
  });

  it("stay where they are if they are another person's, and the account is asked once", () => {
    const guest = kept(named("paul@mail.example"));
    keep(GUEST, guest);
    leaveToGuest("u1", guest);
    expect(guestAnswers(marie)).toBeNull();
    expect(readKept(GUEST)?.answers.description).toBe("Typed words");
    expect(guestAnswers({ id: "u2", email: "u2@mail.example" })?.theirs).toBe(false);
    forgetTypedBy("u1");
    expect(guestAnswers(marie)?.theirs).toBe(false);
  });
});
