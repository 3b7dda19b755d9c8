import { useState } from "react";
import { errorHint } from "./errors";
import { sendKeyName } from "./kept-form";
import { newKey } from "./new-key";
import { readStored, store } from "./stored";

/**
 * The idempotency key of a form, so that it is sent once even if answers are lost. `refused` makes a new key if another
 * version was already sent under it: sending again after that message means a second one.
 *
 * `keptAs`: where `kept-form` keeps what was typed. The key stays beside it, because after a reload the same text is still the
 * same message; both are forgotten together.
 */
export function useSendKey(keptAs?: string) {
  const [key, setKey] = useState(
    () => (keptAs === undefined ? null : readStored("tab", sendKeyName(keptAs))) ?? newKey(),
  );
  const hold = (key: string) => {
    if (keptAs !== undefined) store("tab", sendKeyName(keptAs), key);
  };
  const renew = () => setKey(newKey());
  const refused = (error: unknown) => {
    if (errorHint(error) !== "key_reused") return;
    const next = newKey();
    hold(next);
    setKey(next);
  };
  /** The key, kept from now on: call it when sending. */
  const take = () => {
    hold(key);
    return key;
  };
  return { take, renew, refused };
}
