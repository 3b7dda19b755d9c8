/**
 * The project under test, named by the environment alone: any Supabase-compatible server will do.
 *
 * SUPABASE_URL, SUPABASE_ANON_KEY, SUPABASE_SERVICE_ROLE_KEY default to those of `supabase start`;
 * INBOX_URL is a mail inbox with `GET /api/messages?to=`.
 */
import { randomUUID } from "node:crypto";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import WebSocket from "ws";

const WELL_KNOWN_ANON =
  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0";
const WELL_KNOWN_SERVICE =
  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";

export const project = {
  url: process.env.SUPABASE_URL ?? "http://127.0.0.1:54321",
  anonKey: process.env.SUPABASE_ANON_KEY ?? WELL_KNOWN_ANON,
  serviceKey: process.env.SUPABASE_SERVICE_ROLE_KEY ?? WELL_KNOWN_SERVICE,
  inbox: process.env.INBOX_URL ?? "http://127.0.0.1:54324",
};

/** Names everything a run makes, so that runs do not meet. */
export const run = randomUUID().slice(0, 8);

export const PASSWORD = "correct-Horse-7";

// supabase-js stays as it is; Node 20 has no WebSocket of its own.
const realtime = { transport: WebSocket as never };

export function client(key: string = project.anonKey): SupabaseClient {
  return createClient(project.url, key, { realtime, auth: { persistSession: false, autoRefreshToken: false } });
}

export const anon = () => client();
export const service = () => client(project.serviceKey);

export function freshEmail(name = "user"): string {
  return `${name.toLowerCase()}-${run}-${randomUUID().slice(0, 8)}@compat.test`;
}

/** A signed-up user with a session and the client that holds it. */
export async function signedUp(name = "user") {
  const supabase = anon();
  const email = freshEmail(name);
  const { data, error } = await supabase.auth.signUp({ email, password: PASSWORD, options: { data: { full_name: name } } });
  if (error || !data.user || !data.session) throw new Error(`sign-up gave no session: ${error?.message}`);
  return { supabase, email, user: data.user, session: data.session };
}

export interface Mail {
  id: string;
  to: string;
  subject: string;
  text: string;
  html: string;
}

/** Waits for a mail to `to` whose subject matches. */
export async function mailTo(to: string, subject: RegExp): Promise<Mail> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    const list = (await (await fetch(`${project.inbox}/api/messages?to=${encodeURIComponent(to)}`)).json()) as Mail[];
    const found = list.find((mail) => subject.test(mail.subject));
    if (found) return (await (await fetch(`${project.inbox}/api/messages/${found.id}`)).json()) as Mail;
    if (Date.now() > deadline) throw new Error(`no mail to ${to} with a subject like ${subject}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The first link in a mail's text. */
export function linkIn(mail: Mail): URL {
  const found = /https?:\/\/[^\s<>"]+/.exec(mail.text);
  if (!found) throw new Error(`no link in: ${mail.text}`);
  return new URL(found[0]);
}
