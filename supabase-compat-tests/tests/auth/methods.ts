/** What `supabase.auth` offers, read from the client itself. */
import { client } from "../project";

/** Functions of the client that are not called by applications; each is reached by the method named. */
export const INNER: Record<string, string> = {
  "auth.fetch": "every method: how requests are sent",
  "auth.logger": "where the client's own log goes",
  "auth.fetchJwk": "auth.getClaims",
  "auth.signInWithEthereum": "auth.signInWithWeb3",
  "auth.signInWithSolana": "auth.signInWithWeb3",
  "auth.linkIdentityOAuth": "auth.linkIdentity",
  "auth.linkIdentityIdToken": "auth.linkIdentity",
  "auth.admin.fetch": "every method: how requests are sent",
};

/** State that the client keeps beside its methods. */
const STATE = new Set(["storage", "memoryStorage", "headers", "experimental", "client", "broadcastChannel", "userStorage"]);

/** Every public function below `supabase.auth`, as `auth.mfa.enroll`. */
export function authMethods(): string[] {
  const found = new Set<string>();
  const visited = new Set<unknown>();
  const walk = (value: object, path: string) => {
    if (visited.has(value)) return;
    visited.add(value);
    for (let level = value; level && level !== Object.prototype; level = Object.getPrototypeOf(level) as object) {
      for (const name of Object.getOwnPropertyNames(level)) {
        if (name === "constructor" || name.startsWith("_") || STATE.has(name)) continue;
        const item = (value as Record<string, unknown>)[name];
        if (typeof item === "function") found.add(`${path}.${name}`);
        else if (isNamespace(item)) walk(item, `${path}.${name}`);
      }
    }
  };
  walk(client().auth, "auth");
  return [...found].sort();
}

function isNamespace(value: unknown): value is object {
  const container = value instanceof Map || value instanceof Set || value instanceof Promise || Array.isArray(value);
  return typeof value === "object" && value !== null && !container;
}
