import { describe, expect, it } from "vitest";
import {
  emptyAnswers,
  emptyIdentity,
  identify,
  isBlank,
  showsSent,
  splitName,
  toggleNonprofit,
  withTyped,
  type Answers,
} from "./answers";
import { allowedStep, furthestStep } from "./progress";

const identity = {
  firstName: "Marie",
  lastName: "Désir",
  email: "marie@mail.example",
  phone: "+1 207 555 0142",
  address: "18 Main Street",
  city: "Portland",
  state: "ME",
  postalCode: "04101",
};
const np = (n: number) => ({ id: `np-00${n}`, name: `Nonprofit ${n}` });

const complete: Answers = {
  ...emptyAnswers("00000000-0000-4000-8000-000000000001"),
  category: { id: "cat-001", name: "Food Assistance" },
  nonprofits: [np(1)],
  identity,
  description: "We need food until my new job starts.",
};

describe("the steps of the wizard", () => {
  it("starts at the category", () => {
    expect(furthestStep(emptyAnswers("k"))).toBe("category");
  });

  it.each([
    ["nonprofits", { ...complete, nonprofits: [] }],
    ["info", { ...complete, identity: { ...identity, email: "marie@" } }],
    ["info", { ...complete, identity: { ...identity, postalCode: "0" } }],
    ["details", { ...complete, description: "too short" }],
    ["details", { ...complete, amount: "a lot" }],
    ["review", complete],
    ["sent", { ...complete, consent: true }],
  ] as const)("reaches %s, where an answer is missing", (step, answers) => {
    expect(furthestStep(answers)).toBe(step);
  });

  it("lets a URL go back but not beyond the answered steps", () => {
    expect(allowedStep("category", complete)).toBe("category");
    expect(allowedStep("details", complete)).toBe("details");
    expect(allowedStep("review", { ...complete, nonprofits: [] })).toBe("nonprofits");
    expect(allowedStep("sent", complete)).toBe("review");
  });

  it("opens a URL without a step or with an unknown step at the category", () => {
    expect(allowedStep(null, complete)).toBe("category");
    expect(allowedStep("payment", complete)).toBe("category");
  });
});

describe("choosing nonprofits", () => {
  it("selects and deselects", () => {
    expect(toggleNonprofit([np(1)], np(2))).toEqual({ nonprofits: [np(1), np(2)], full: false });
    expect(toggleNonprofit([np(1), np(2)], np(1))).toEqual({ nonprofits: [np(2)], full: false });
  });

  it("rejects a fourth and keeps three", () => {
    const three = [np(1), np(2), np(3)];
    expect(toggleNonprofit(three, np(4))).toEqual({ nonprofits: three, full: true });
    expect(toggleNonprofit(three, np(3)).full).toBe(false);
  });
});

describe("identifying a person from the session", () => {
  it("splits the full name into the first word and the rest", () => {
    expect(splitName("Marie-Thérèse Désir Beauvoir")).toEqual({
      firstName: "Marie-Thérèse",
      lastName: "Désir Beauvoir",
    });
    expect(splitName("Cher")).toEqual({ firstName: "Cher", lastName: "" });
  });

  it("fills empty fields, keeps typed ones and uses the account's email", () => {
    const session = { email: "account@mail.example", fullName: "Ann Lee", phoneNumber: "12345" };
    expect(identify({ ...identity, firstName: "", phone: "999999" }, session)).toEqual({
      ...identity,
      firstName: "Ann",
      phone: "999999",
      email: "account@mail.example",
    });
  });
});

describe("answers worth saving", () => {
  it("are absent when only the session's contact data is filled in", () => {
    expect(isBlank({ ...emptyAnswers("k"), identity })).toBe(true);
    expect(isBlank({ ...emptyAnswers("k"), description: "Hello" })).toBe(false);
    expect(isBlank({ ...emptyAnswers("k"), draftId: "d" })).toBe(false);
  });
});

it.each([
  ["sent", emptyAnswers("k"), true],
  ["review", emptyAnswers("k"), true],
  ["info", { ...emptyAnswers("k"), identity }, true],
  ["category", emptyAnswers("k"), false],
  [null, emptyAnswers("k"), false],
  ["review", complete, false],
  ["sent", complete, true],
])("after a request went out, %s shows its confirmation and no empty form (row %#)", (wanted, answers, shown) => {
  expect(showsSent(wanted, { number: "REQ-001" }, answers)).toBe(shown);
  expect(showsSent(wanted, null, answers)).toBe(false);
});

describe("withTyped", () => {
  it("prefers typed values and takes the rest from the session", () => {
    const typed = { ...emptyIdentity, phone: "+1 207 555 0199", city: "Bath" };
    expect(withTyped(identity, typed)).toEqual({ ...identity, phone: "+1 207 555 0199", city: "Bath" });
  });
});
