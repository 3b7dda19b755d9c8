/** Clients, people and mails of the project under test. */
import { randomUUID } from "node:crypto";
import { createClient, type SupabaseClient, type SupabaseClientOptions } from "@supabase/supabase-js";
import { inject } from "vitest";
import WebSocket from "ws";
import { environment } from "./environment";
import { need } from "./needs";
import { watched } from "./traces";

export const project = {
  url: environment.url,
  anonKey: environment.anonKey,
  get serviceKey(): string {
    need("serviceKey");
    return environment.serviceKey ?? "";
  },
};

/** In the names of everything a run makes, so that runs do not meet. */
export const run = inject("run");

export const PASSWORD = "correct-Horse-7";

// supabase-js stays as it is; Node 20 has no WebSocket of its own.
const realtime = { transport: WebSocket as never };

const MEMORY_ONLY = { persistSession: false, autoRefreshToken: false };

export function client(key: string = project.anonKey, auth: SupabaseClientOptions<"public">["auth"] = MEMORY_ONLY): SupabaseClient {
  return createClient(project.url, key, { realtime, global: { fetch: watched }, auth });
}

export const anon = () => client();
export const service = () => client(project.serviceKey);

export function freshEmail(name = "user"): string {
  return `${name.toLowerCase()}-${run}-${randomUUID().slice(0, 8)}@compat.test`;
}

/** A signed-up user with a session and the client that holds it; made by an administrator where sign-up gives no session. */
export async function signedUp(name = "user") {
  need("sessions");
  const supabase = anon();
  const email = freshEmail(name);
  const about = { full_name: name };
  const { data, error } = await supabase.auth.signUp({ email, password: PASSWORD, options: { data: about } });
  if (data.user && data.session) return { supabase, email, user: data.user, session: data.session };
  if (!environment.serviceKey) throw new Error(`sign-up gave no session: ${error?.message}`);
  if (data.user) await service().auth.admin.deleteUser(data.user.id);
  const made = await service().auth.admin.createUser({ email, password: PASSWORD, email_confirm: true, user_metadata: about });
  if (made.error) throw made.error;
  const inside = await supabase.auth.signInWithPassword({ email, password: PASSWORD });
  if (inside.error) throw inside.error;
  return { supabase, email, user: inside.data.user, session: inside.data.session };
}

export interface Mail {
  subject: string;
  text: string;
  html: string;
}

/** Waits for a mail to `to` whose subject matches, in an inbox that answers as Mailpit does. */
export async function mailTo(to: string, subject: RegExp): Promise<Mail> {
  need("inbox");
  const api = `${environment.inbox}/api/v1`;
  const deadline = Date.now() + 10_000;
  for (;;) {
    const answer = await fetch(`${api}/search?query=${encodeURIComponent(`to:"${to}"`)}`);
    const { messages } = (await answer.json()) as { messages: { ID: string; Subject: string }[] };
    const found = messages.find((mail) => subject.test(mail.Subject));
    if (found) {
      const mail = (await (await fetch(`${api}/message/${found.ID}`)).json()) as { Subject: string; Text: string; HTML: string };
      return { subject: mail.Subject, text: mail.Text, html: mail.HTML };
    }
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
