/**
 * Who the person is, kept in this tab for a reload without a line: a form that was begun signed in opens again with its answers.
 * It goes with the tab and with the session; 'Exit this page' clears it.
 */
import { readStoredJson, removeStored, SESSION_STORAGE_KEY, store } from "@/lib/stored";
import type { Me } from "./answers";
import type { AuthUser } from "./api";

const VERSION = 1;
const nameOf = (userId: string) => `aidbridge-me:${userId}`;

export const keepMe = (userId: string, me: Me): boolean =>
  store("tab", nameOf(userId), JSON.stringify({ version: VERSION, me }));

export function keptMe(userId: string): Me {
  const kept = readStoredJson("tab", nameOf(userId)) as { version?: number; me?: Me } | null;
  return kept?.version === VERSION ? (kept.me ?? null) : null;
}

export const forgetMe = (userId: string): void => removeStored("tab", nameOf(userId));

/** Whose session this browser keeps, as long as nobody can be asked whether it still holds. */
export function keptUser(): AuthUser | null {
  if (navigator.onLine) return null;
  const session = readStoredJson("browser", SESSION_STORAGE_KEY) as { user?: AuthUser } | null;
  return typeof session?.user?.id === "string" && keptMe(session.user.id) ? session.user : null;
}
