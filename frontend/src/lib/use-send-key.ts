import { useState } from "react";
import { errorHint } from "./errors";
import { newKey } from "./new-key";

/**
 * The idempotency key of a form, so that it is sent once even if answers are lost. `refused` makes a new key if another
 * version was already sent under it: sending again after that message means a second one.
 */
export function useSendKey() {
  const [key, setKey] = useState(newKey);
  const renew = () => setKey(newKey());
  const refused = (error: unknown) => {
    if (errorHint(error) === "key_reused") renew();
  };
  return { key, renew, refused };
}
