/** What a run has made, seen in the answers, and how it is removed again. */
import { environment } from "./environment";
import { noteRefusal } from "./needs";

const users = new Map<string, string | undefined>();
const removable: string[] = [];

interface AuthAnswer {
  id?: string;
  aud?: string;
  user?: { id?: string };
  access_token?: string;
  client_id?: string;
  identifier?: string;
  code?: unknown;
  error_code?: unknown;
  error?: unknown;
}

/** `fetch` for the clients of the tests. */
export const watched: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  const { pathname } = new URL(answer.url || String(input));
  const isJson = answer.headers.get("content-type")?.includes("json");
  if (isJson && (pathname.startsWith("/auth/v1/") || !answer.ok)) {
    const body = (await answer.clone().json().catch(() => null)) as AuthAnswer | null;
    if (body) note(pathname, answer.ok, body);
  }
  return answer;
};

function note(pathname: string, ok: boolean, body: AuthAnswer) {
  if (!ok) {
    for (const code of [body.error_code, body.code, body.error]) noteRefusal(code);
    return;
  }
  const id = body.user?.id ?? (body.aud !== undefined ? body.id : undefined);
  if (id) users.set(id, body.access_token ?? users.get(id));
  const made = /^\/auth\/v1\/admin\/(oauth\/clients|custom-providers)$/.exec(pathname)?.[1];
  const name = made === "custom-providers" ? body.identifier : body.client_id;
  if (made && name) removable.push(`/auth/v1/admin/${made}/${name}`);
}

const headers = (key: string, token = key) => ({
  apikey: key,
  "content-type": "application/json",
  ...(token.startsWith("sb_") ? {} : { authorization: `Bearer ${token}` }),
});

/** Removes a person's files of the bucket that the migrations make. */
async function removeFiles(id: string, as: Record<string, string>) {
  const bucket = `${environment.url}/storage/v1/object`;
  const listed = await fetch(`${bucket}/list/compat`, { method: "POST", headers: as, body: JSON.stringify({ prefix: id, limit: 100 }) });
  const files = listed.ok ? ((await listed.json()) as { name: string }[]) : [];
  if (files.length === 0) return;
  await fetch(`${bucket}/compat`, { method: "DELETE", headers: as, body: JSON.stringify({ prefixes: files.map(({ name }) => `${id}/${name}`) }) });
}

/** Removes what the tests of a file have made: as an administrator, or as the people themselves where there is no such key. */
export async function tidy(run: string) {
  const { anonKey, serviceKey } = environment;
  for (const path of removable.splice(0)) {
    if (serviceKey) await fetch(`${environment.url}${path}`, { method: "DELETE", headers: headers(serviceKey) });
  }
  for (const [id, token] of users) {
    const own = token ? headers(anonKey, token) : undefined;
    const as = serviceKey ? headers(serviceKey) : own;
    if (as) await removeFiles(id, as);
    if (serviceKey) await fetch(`${environment.url}/auth/v1/admin/users/${id}`, { method: "DELETE", headers: headers(serviceKey) });
    else if (own) await leave(run, own);
  }
  users.clear();
}

/** Has the database remove the rows and people of a run; false where the suite's schema is not there. */
export async function leave(run: string, as = headers(environment.anonKey)): Promise<boolean> {
  const answer = await fetch(`${environment.url}/rest/v1/rpc/compat_leave`, { method: "POST", headers: as, body: JSON.stringify({ run }) });
  return answer.ok;
}

interface User {
  id: string;
  email?: string;
}

/** The people of a run that are still there, as an administrator sees them. */
export async function stillThere(run: string, serviceKey: string): Promise<User[]> {
  const found: User[] = [];
  for (let page = 1; ; page++) {
    const answer = await fetch(`${environment.url}/auth/v1/admin/users?page=${page}&per_page=1000&filter=${run}`, { headers: headers(serviceKey) });
    if (!answer.ok) return found;
    const { users } = (await answer.json()) as { users: User[] };
    found.push(...users.filter(({ email }) => email?.includes(`-${run}-`)));
    if (users.length < 1000) return found;
  }
}

/** Removes the people of a run by their addresses and says how many remain. */
export async function sweep(run: string): Promise<string | undefined> {
  const left = await leave(run);
  if (!environment.serviceKey) {
    return left ? undefined : "without a service key and without the suite's schema (supabase/migrations) the accounts of this run stay";
  }
  for (const { id } of await stillThere(run, environment.serviceKey)) {
    await fetch(`${environment.url}/auth/v1/admin/users/${id}`, { method: "DELETE", headers: headers(environment.serviceKey) });
  }
  const rest = await stillThere(run, environment.serviceKey);
  return rest.length > 0 ? `these accounts could not be removed: ${rest.map(({ email }) => email).join(", ")}` : undefined;
}
