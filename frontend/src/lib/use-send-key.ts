import { useState } from "react";
import { errorHint } from "./errors";
import { newKey } from "./new-key";

/**
 * The key under which a form is sent once, however often an answer is lost. `refused` makes another when the first version went out
 * and this one says otherwise: whoever was told that and sends again means a second one.
 */
export function useSendKey() {
  const [key, setKey] = useState(newKey);
  const renew = () => setKey(newKey());
  const refused = (error: unknown) => {
    if (errorHint(error) === "key_reused") renew();
  };
  return { key, renew, refused };
}
