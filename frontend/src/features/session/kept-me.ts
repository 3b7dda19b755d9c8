/**
 * Keeps the person's data in this tab for an offline reload, so that a form begun while signed in reopens with its
 * answers. Removed with the tab and the session, and by 'Exit this page'.
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

/** The user of the stored session, while the server cannot be asked whether it is still valid. */
export function keptUser(): AuthUser | null {
  if (navigator.onLine) return null;
  const session = readStoredJson("browser", SESSION_STORAGE_KEY) as { user?: AuthUser } | null;
  return typeof session?.user?.id === "string" && keptMe(session.user.id) ? session.user : null;
}
