/**
 * The answers so far. Pure: the wizard, the single page, the browser's copy and the saved draft all use the same
 * `Answers`. The first question loads this file, but no schema; `progress.ts` decides which step the answers allow.
 */
import type { StoredDocument } from "@/lib/request-documents";
import type { Identity } from "./schema";

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
  /** The consent to texts; undefined as long as nobody said anything. */
  texts?: boolean;
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

/** Merges typed fields into an identity; empty ones change nothing. */
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

/** True when a guest has typed nothing at all; on the single page, name and address may come before any other answer. */
export const isUntouched = (answers: Answers): boolean =>
  isBlank(answers) && !answers.consent && Object.values(answers.identity).every((typed) => typed.trim() === "");

/** Sets the kind of help. The first time, the person's selected nonprofit is chosen too. */
export function withCategory(answers: Answers, category: Chosen, selected: Chosen | null): Answers {
  const first = answers.category === null && answers.nonprofits.length === 0 && selected;
  return { ...answers, category, nonprofits: first ? [first] : answers.nonprofits };
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

/**
 * Whether this step's URL shows the confirmation of the last request: its own URL, and all later steps' until something
 * new is begun. Reloading or going back right after sending must not show an empty form.
 */
export const showsSent = (wanted: string | null, sent: object | null, answers: Answers): boolean =>
  sent !== null && (wanted === "sent" || (steps.indexOf(wanted as Step) > 0 && isBlank(answers)));

/** 'Marie-Thérèse Désir-Beauvoir' → first word and the rest (section 4). */
export function splitName(fullName: string): { firstName: string; lastName: string } {
  const [firstName = "", ...rest] = fullName.trim().split(/\s+/);
  return { firstName, lastName: rest.join(" ") };
}

/** Fills empty identity fields from the session; typed values stay, except that the account's address wins. */
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
