/**
 * `t("feature.key", { name })`: the words of the app.
 *
 * Add a feature: write `en/<feature>.ts`, add its line to `Catalogue` (types only; the words
 * themselves load with the screens that import them).
 */
import { fill, find, translated, type Params } from "./catalogue";
import "./en/common";

export interface Catalogue {
  common: typeof import("./en/common").common;
  marketing: typeof import("./en/marketing").marketing;
  shell: typeof import("./en/shell").shell;
  account: typeof import("./en/account").account;
  home: typeof import("./en/home").home;
  auth: typeof import("./en/auth").auth;
  errors: typeof import("./en/errors").errors;
  addressCode: typeof import("./en/addressCode").addressCode;
  requestForm: typeof import("./en/requestForm").requestForm;
  openRequest: typeof import("./en/openRequest").openRequest;
  texts: typeof import("./en/texts").texts;
  myRequests: typeof import("./en/myRequests").myRequests;
  unsent: typeof import("./en/unsent").unsent;
  notSent: typeof import("./en/notSent").notSent;
  lookup: typeof import("./en/lookup").lookup;
  picker: typeof import("./en/picker").picker;
  files: typeof import("./en/files").files;
  organization: typeof import("./en/organization").organization;
  incoming: typeof import("./en/incoming").incoming;
  nonprofitDashboard: typeof import("./en/nonprofitDashboard").nonprofitDashboard;
  team: typeof import("./en/team").team;
  budget: typeof import("./en/budget").budget;
  helpCategories: typeof import("./en/helpCategories").helpCategories;
  donorMessages: typeof import("./en/donorMessages").donorMessages;
  donations: typeof import("./en/donations").donations;
  faq: typeof import("./en/faq").faq;
  partners: typeof import("./en/partners").partners;
  validation: typeof import("./en/validation").validation;
}

export type MessageKey = {
  [F in keyof Catalogue & string]: `${F}.${keyof Catalogue[F] & string}`;
}[keyof Catalogue & string];

/** The text behind a key with its parameters put in; `count` chooses the plural form. */
export function t(key: MessageKey, params?: Params): string {
  const foreign = translated(key, params);
  if (foreign !== undefined) return foreign;
  const count = params?.count;
  return fill(find(key, typeof count === "number" ? count : undefined), params);
}

/** The pieces of a message whose `{name}` places take elements: see `components/words.tsx`. */
export function pieces(key: MessageKey): string[] {
  return (translated(key) ?? find(key)).split(/(\{\w+\})/g);
}
