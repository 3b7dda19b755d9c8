/**
 * How a language's catalogue is divided, so that nobody waits for the words of every other page: `ask` for the request form's first
 * question, `first` for the rest of that form, the landing page and the look-up, `rest` for all others.
 */
export type Part = "ask" | "first" | "rest";

const ASK: ReadonlySet<string> = new Set(["common", "errors", "requestForm", "shell", "names"]);
const FIRST: ReadonlySet<string> = new Set([
  "validation",
  "files",
  "addressCode",
  "lookup",
  "openRequest",
  "texts",
  "home",
  "refusals",
  "notSent",
  "unsent",
]);

const featureOf = (key: string) => key.split(".")[0] ?? "";

export const partOf = (key: string): Part => {
  const feature = featureOf(key);
  return ASK.has(feature) ? "ask" : FIRST.has(feature) ? "first" : "rest";
};

/** The database writes mails and has its own copy of their texts (`sql/app/words`). */
export const inMailsAlone = (key: string): boolean => featureOf(key) === "mail";
