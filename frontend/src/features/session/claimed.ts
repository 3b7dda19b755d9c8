/** Records the sign-in for which earlier requests were claimed: once per sign-in is enough. */
import { readStored, store } from "@/lib/stored";
import type { AuthUser } from "./api";

const KEY = "aidbridge-claimed";
const nameOf = ({ id, last_sign_in_at: at }: AuthUser): string | null => (at ? `${id} ${at}` : null);

export function wasClaimed(who: AuthUser): boolean {
  const name = nameOf(who);
  return name !== null && readStored("browser", KEY) === name;
}

export function noteClaimed(who: AuthUser): void {
  const name = nameOf(who);
  if (name !== null) store("browser", KEY, name);
}
