/** How a language's catalogue is divided, so that the request form does not wait for the words of every other page. */

/** The features that come first: the landing page, and the way of a person without an account. */
export const FIRST: readonly string[] = [
  "common",
  "errors",
  "validation",
  "files",
  "addressCode",
  "lookup",
  "openRequest",
  "requestForm",
  "texts",
  "shell",
  "home",
  "names",
  "refusals",
];

const featureOf = (key: string) => key.split(".")[0] ?? "";

export const comesFirst = (key: string): boolean => FIRST.includes(featureOf(key));

/** Mails are written by the database, which has its own copy of their words (`sql/app/words`). */
export const inMailsAlone = (key: string): boolean => featureOf(key) === "mail";
