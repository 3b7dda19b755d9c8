/** Divides a language's catalogue, so that the request form does not wait for the texts of all other pages. */

/** The features of the first part: the landing page, and the path of a person without an account. */
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

/** The database writes mails and has its own copy of their texts (`sql/app/words`). */
export const inMailsAlone = (key: string): boolean => featureOf(key) === "mail";
