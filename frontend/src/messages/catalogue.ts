/**
 * The catalogue: features define their texts, `t` looks them up.
 *
 * A feature's texts are loaded with the feature (a file that calls `t("wizard.…")` imports
 * `@/messages/en/wizard`; a test checks that), so no page loads another page's texts.
 */

/** A text, or its plural forms chosen by the parameter `count` (`Intl.PluralRules`). */
export type Message = string | { readonly one: string; readonly other: string };
export type Messages = Readonly<Record<string, Message>>;
export type Params = Readonly<Record<string, string | number>>;

const features = new Map<string, Messages>();
const plurals = new Intl.PluralRules("en-US");

/** Registers a feature's texts and returns them, so that their keys are typed. */
export function define<const M extends Messages>(feature: string, messages: M): M {
  features.set(feature, messages);
  return messages;
}

/** The message behind `feature.key`, before parameters go in. Throws when it was never defined. */
export function find(key: string, count?: number): string {
  const dot = key.indexOf(".");
  const message = features.get(key.slice(0, dot))?.[key.slice(dot + 1)];
  if (message === undefined) throw new Error(`no message '${key}': is '@/messages/en/${key.slice(0, dot)}' imported?`);
  if (typeof message === "string") return message;
  return plurals.select(count ?? 0) === "one" ? message.one : message.other;
}

/** Says a message in the reader's language; undefined where it is not translated. */
export type Translator = (key: string, params?: Params) => string | undefined;

let translator: Translator | null = null;

/** Sets the language of messages; null: English. */
export function setTranslator(next: Translator | null): void {
  translator = next;
}

/** The message in the reader's language, if there is one. */
export const translated: Translator = (key, params) => translator?.(key, params);

/** Puts `{name}` parameters into a message. */
export function fill(message: string, params: Params = {}): string {
  return message.replace(/\{(\w+)\}/g, (whole, name: string) => (name in params ? String(params[name]) : whole));
}
