/** Before all tests: what the server under test has, and what is missing. After them: what the run has left is removed. */
import { randomUUID } from "node:crypto";
import WebSocket from "ws";
import type { TestProject } from "vitest/node";
import { outsideOrigin } from "./auth/outside";
import { environment } from "./environment";
import type { Need } from "./needs";
import { sweep } from "./traces";

async function ask(path: string, init: RequestInit = {}, key = environment.anonKey) {
  const answer = await fetch(`${environment.url}${path}`, { redirect: "manual", ...init, headers: { apikey: key, ...init.headers } });
  const text = await answer.text();
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    // A page of a proxy: nothing to read from.
  }
  return { status: answer.status, body, location: answer.headers.get("location") };
}

function opensSocket(): Promise<boolean> {
  const address = `${environment.url.replace(/^http/, "ws")}/realtime/v1/websocket?apikey=${environment.anonKey}&vsn=1.0.0`;
  const socket = new WebSocket(address, { handshakeTimeout: 10_000 });
  return new Promise((resolve) => {
    socket.once("open", () => resolve(true)).once("error", () => resolve(false));
  }).then((opened) => {
    socket.terminate();
    return opened as boolean;
  });
}

async function hasInbox(): Promise<boolean> {
  if (!environment.inbox) return false;
  return fetch(`${environment.inbox}/api/v1/messages?limit=1`).then((answer) => answer.ok, () => false);
}

async function lookAround(): Promise<Partial<Record<Need, string>>> {
  const missing: Partial<Record<Need, string>> = {};
  if (!environment.anonKey) throw new Error("SUPABASE_ANON_KEY is not set");
  const health = await ask("/auth/v1/health").catch((error: Error) => {
    throw new Error(`nothing answers at ${environment.url}: ${String(error.cause ?? error)}`);
  });
  if (health.status === 401 || health.status === 403) throw new Error(`${environment.url} refuses SUPABASE_ANON_KEY`);
  if (health.status !== 200) missing.auth = "no auth API answers";

  const table = await ask("/rest/v1/compat_authors?limit=0");
  const people = await ask("/rest/v1/nonprofit_team_members?limit=0");
  const isRest = table.status === 200 || typeof table.body.code === "string";
  if (!isRest) missing.rest = "no REST API answers";
  if (table.status !== 200) missing.schema = "the suite's schema is not there: apply supabase/migrations";
  if (people.body.code === "PGRST205" || !isRest) missing.aidbridge = "not AidBridge's server";
  if ((await ask("/storage/v1/bucket")).status !== 200) missing.storage = "no storage API answers";
  if (!(await opensSocket())) missing.realtime = "no realtime API answers";
  const echo = await ask("/functions/v1/compat-echo", {
    method: "POST", body: "{}", headers: { "content-type": "application/json", authorization: `Bearer ${environment.anonKey}` },
  });
  if (echo.status !== 200) missing.functions = "the function compat-echo is not deployed";

  if (!environment.serviceKey) missing.serviceKey = "no service key: set SUPABASE_SERVICE_ROLE_KEY";
  else if ((await ask("/auth/v1/admin/users?per_page=1", { headers: bearer(environment.serviceKey) }, environment.serviceKey)).status !== 200) {
    missing.serviceKey = "SUPABASE_SERVICE_ROLE_KEY is refused";
    if (process.env.SUPABASE_SERVICE_ROLE_KEY) throw new Error(missing.serviceKey);
    environment.serviceKey = undefined;
  }
  if (!environment.inbox) missing.inbox = "no mailbox: set MAILPIT_URL";
  else if (!(await hasInbox())) missing.inbox = `no mailbox answers at ${environment.inbox}`;

  const { body: settings } = await ask("/auth/v1/settings");
  if (missing.auth) missing.sessions = missing.auth;
  else if (missing.serviceKey && settings.disable_signup) missing.sessions = "sign-up is switched off, and there is no service key";
  else if (missing.serviceKey && !settings.mailer_autoconfirm) missing.sessions = "addresses are confirmed by mail, and there is no service key";
  const away = await ask("/auth/v1/authorize?provider=github");
  if (!away.location?.startsWith(outsideOrigin)) missing.outside = "GitHub and Keycloak are not those that the suite plays (server.env)";
  return missing;
}

const bearer = (key: string): Record<string, string> => (key.startsWith("sb_") ? {} : { authorization: `Bearer ${key}` });

export default async function setup({ provide }: TestProject) {
  const run = randomUUID().slice(0, 8);
  provide("missing", await lookAround());
  provide("run", run);
  return async () => {
    const stays = await sweep(run);
    if (!stays) return;
    console.error(`\nleft behind: ${stays}`);
    if (environment.serviceKey) process.exitCode = 1;
  };
}
