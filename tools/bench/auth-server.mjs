// The auth server under test, its accounts, and the measured requests.
import * as bench from "./cluster.mjs";

export const password = "correct horse battery";
export const json = { "Content-Type": "application/json" };

/** Roles and schema as a project has them before the server's first start. */
export function prepareDatabase() {
  bench.sql(`create role anon nologin noinherit; create role authenticated nologin noinherit; create role service_role nologin noinherit;
  create role supabase_auth_admin login noinherit createrole; alter role supabase_auth_admin set search_path = 'auth';
  create schema auth authorization supabase_auth_admin; grant create on database postgres to supabase_auth_admin;`);
}

/** Its environment. */
export const serverSettings = () => ({
  GOTRUE_DB_DRIVER: "postgres", GOTRUE_DB_DATABASE_URL: bench.uri("supabase_auth_admin"), GOTRUE_DB_MAX_POOL_SIZE: "20",
  GOTRUE_API_HOST: "127.0.0.1", PORT: String(bench.serverPort), API_EXTERNAL_URL: `http://127.0.0.1:${bench.serverPort}`,
  GOTRUE_SITE_URL: "http://127.0.0.1:3000", GOTRUE_JWT_SECRET: "bench-secret-of-forty-characters-0123456", GOTRUE_JWT_EXP: "3600",
  GOTRUE_JWT_AUD: "authenticated", GOTRUE_JWT_DEFAULT_GROUP_NAME: "authenticated", GOTRUE_MAILER_AUTOCONFIRM: "true",
  GOTRUE_EXTERNAL_EMAIL_ENABLED: "true",
  // Wrong passwords are measured without throttling: their cost, not their delay.
  FERROBASE_GUESS_LIMITS: "false",
});

/** Signs up one person per connection; returns them, the works of a measurement, and a sign-in request. */
export async function signUp(connections) {
  const people = [];
  for (let number = 0; number < connections; number++) {
    const email = `person-${number}@example.org`;
    const session = await bench.call("/signup", { method: "POST", headers: json, body: JSON.stringify({ email, password }) });
    people.push({ email, session });
  }
  const signIn = (email, secret, status, expect) => ({ method: "POST", path: "/token?grant_type=password", headers: json,
    body: JSON.stringify({ email, password: secret }), status, expect });
  const works = {
    user: { requests: people.map(({ email, session }) => ({ method: "GET", path: "/user", status: 200, expect: `"email":"${email}"`,
      headers: { Authorization: `Bearer ${session.access_token}` } })) },
    refresh: { requests: [{ method: "POST", path: "/token?grant_type=refresh_token", headers: json, body: '{"refresh_token":"{{value}}"}',
      status: 200, expect: '"access_token"', capture: "refresh_token" }] },
    password: { requests: people.map(({ email }) => signIn(email, password, 200, `"email":"${email}"`)) },
  };
  return { people, works, signIn };
}
