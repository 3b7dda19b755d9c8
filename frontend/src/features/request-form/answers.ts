/**
 * What a person has answered so far, and which step that allows. Pure: the wizard, the single page,
 * the browser's copy and the saved draft all speak of the same `Answers`.
 */
import type { StoredDocument } from "@/lib/request-documents";
import { descriptionSchema, amountSchema, identitySchema, type Identity } from "./schema";

/** Section 9: up to 3 nonprofits per request. */
export const MAX_NONPROFITS = 3;
/** Files sent with a request. */
export const MAX_DOCUMENTS = 5;

/** The wizard's views in order. 'review' belongs to the fourth step, 'sent' is the fifth. */
export const steps = ["category", "nonprofits", "info", "details", "review", "sent"] as const;
export type Step = (typeof steps)[number];

/** The five steps of the progress bridge: 1 Category … 5 Sent. */
export const stepNumber: Record<Step, number> = { category: 1, nonprofits: 2, info: 3, details: 4, review: 4, sent: 5 };

export interface Chosen {
  id: string;
  name: string;
}

export interface Answers {
  /** Made here once per request: a repeated submit carries it again and gives the same number. */
  key: string;
  /** The saved draft's row, when there is one. */
  draftId: string | null;
  form: "wizard" | "single";
  category: Chosen | null;
  nonprofits: readonly Chosen[];
  identity: Identity;
  description: string;
  /** As typed: '', '250', '99.50'. */
  amount: string;
  consent: boolean;
  documents: readonly StoredDocument[];
  /** Signed out: the account that the visitor proved to be theirs and chose. */
  account: LinkedAccount | null;
}

export interface LinkedAccount {
  id: string;
  fullName: string;
  /** The address that was proved; another address ends the link. */
  email: string;
  proof: string;
}

export const emptyIdentity: Identity = {
  firstName: "",
  lastName: "",
  email: "",
  phone: "",
  address: "",
  city: "",
  state: "",
  postalCode: "",
};

/** An identity with what was typed of it; an empty field leaves it as it is. */
export function withTyped(identity: Identity, typed: Partial<Identity>): Identity {
  const said = Object.entries(typed).filter(([, text]) => text !== "");
  return { ...identity, ...(Object.fromEntries(said) as Partial<Identity>) };
}

export function emptyAnswers(key: string, form: Answers["form"] = "wizard"): Answers {
  return {
    key,
    draftId: null,
    form,
    category: null,
    nonprofits: [],
    identity: emptyIdentity,
    description: "",
    amount: "",
    consent: false,
    documents: [],
    account: null,
  };
}

/** True when nothing worth keeping was answered. */
export function isBlank(answers: Answers): boolean {
  return (
    answers.category === null &&
    answers.nonprofits.length === 0 &&
    answers.description.trim() === "" &&
    answers.amount.trim() === "" &&
    answers.documents.length === 0 &&
    answers.draftId === null
  );
}

export type Toggled = { nonprofits: readonly Chosen[]; full: boolean };

/** Ticks or unticks a nonprofit; `full` when a fourth was refused. */
export function toggleNonprofit(chosen: readonly Chosen[], nonprofit: Chosen): Toggled {
  if (chosen.some(({ id }) => id === nonprofit.id)) {
    return { nonprofits: chosen.filter(({ id }) => id !== nonprofit.id), full: false };
  }
  if (chosen.length >= MAX_NONPROFITS) return { nonprofits: chosen, full: true };
  return { nonprofits: [...chosen, { id: nonprofit.id, name: nonprofit.name }], full: false };
}

/** Whether the answers of one view let a person go on from it. */
export function isAnswered(answers: Answers, step: Step): boolean {
  switch (step) {
    case "category":
      return answers.category !== null;
    case "nonprofits":
      return answers.nonprofits.length > 0 && answers.nonprofits.length <= MAX_NONPROFITS;
    case "info":
      return identitySchema.safeParse(answers.identity).success;
    case "details":
      return descriptionSchema.safeParse(answers.description).success && amountSchema.safeParse(answers.amount).success;
    case "review":
      return answers.consent;
    case "sent":
      return false;
  }
}

/** The furthest view these answers reach: the first one that still needs an answer. */
export function furthestStep(answers: Answers): Step {
  return steps.find((step) => !isAnswered(answers, step)) ?? "review";
}

/** The view an address asks for, no further than the answers carry. */
export function allowedStep(wanted: string | null, answers: Answers): Step {
  const furthest = furthestStep(answers);
  const index = steps.indexOf(wanted as Step);
  if (index < 0) return "category";
  return index <= steps.indexOf(furthest) ? (wanted as Step) : furthest;
}

/**
 * Whether the confirmation of the last request stands at this step's address: at its own, and at every later one than the
 * first while nothing new is begun. Whoever reloads or goes back just when the request went out must not find an empty form.
 */
export const showsSent = (wanted: string | null, sent: object | null, answers: Answers): boolean =>
  sent !== null && (wanted === "sent" || (steps.indexOf(wanted as Step) > 0 && isBlank(answers)));

/** 'Marie-Thérèse Désir-Beauvoir' → first word and the rest (section 4). */
export function splitName(fullName: string): { firstName: string; lastName: string } {
  const [firstName = "", ...rest] = fullName.trim().split(/\s+/);
  return { firstName, lastName: rest.join(" ") };
}

/** Fills empty identity fields from what the session knows; what was typed stays, the account's address wins. */
export function identify(identity: Identity, user: { email: string; fullName: string; phoneNumber: string }): Identity {
  const name = splitName(user.fullName);
  return {
    ...identity,
    firstName: identity.firstName || name.firstName,
    lastName: identity.lastName || name.lastName,
    phone: identity.phone || user.phoneNumber,
    email: user.email || identity.email,
  };
}
