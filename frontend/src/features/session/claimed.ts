/** Remembers for which sign-in the requests sent before it were taken over: once for each is enough. */
import type { AuthUser } from "./api";

const KEY = "aidbridge-claimed";
const nameOf = ({ id, last_sign_in_at: at }: AuthUser): string | null => (at ? `${id} ${at}` : null);

export function wasClaimed(who: AuthUser): boolean {
  try {
    const name = nameOf(who);
    return name !== null && localStorage.getItem(KEY) === name;
  } catch {
    return false;
  }
}

export function noteClaimed(who: AuthUser): void {
  try {
    const name = nameOf(who);
    if (name !== null) localStorage.setItem(KEY, name);
  } catch {
    // storage is closed: it is asked again at the next load
  }
}
