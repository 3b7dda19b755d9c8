/** A journey through a method of the client: what it does, and how it is refused. */
import { createHmac } from "node:crypto";
import { anon, PASSWORD, project, service, signedUp } from "../project";

export interface Journey {
  succeeds: () => Promise<void>;
  fails: () => Promise<void>;
}
export type Journeys = Record<string, Journey>;

export const NOBODY = "11111111-2222-4333-8444-555555555555";

/** The value, or an error that says what is missing. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`${what} is missing`);
  return value;
}

/** The code of RFC 6238 at this moment. */
export function totp(secret: string): string {
  const bits = [...secret].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const digest = createHmac("sha1", key).update(step).digest();
  const word = digest.readUInt32BE((digest[19] ?? 0) & 15) & 0x7fff_ffff;
  return String(word % 1_000_000).padStart(6, "0");
}

/** A signed-up user with a TOTP factor that waits for its first code. */
export async function withFactor() {
  const user = await signedUp("factor");
  const { data, error } = await user.supabase.auth.mfa.enroll({ factorType: "totp", friendlyName: "clock" });
  if (error) throw error;
  return { ...user, factorId: data.id, secret: data.totp.secret };
}

/** That user at the second level. */
export async function withProvenFactor() {
  const user = await withFactor();
  const { error } = await user.supabase.auth.mfa.challengeAndVerify({ factorId: user.factorId, code: totp(user.secret) });
  if (error) throw error;
  return user;
}

/** A person as an administrator made them, signed in by password. */
export async function made(email: string) {
  const { data, error } = await service().auth.admin.createUser({ email, password: PASSWORD, email_confirm: true });
  if (error) throw error;
  const supabase = anon();
  const { error: refused } = await supabase.auth.signInWithPassword({ email, password: PASSWORD });
  if (refused) throw refused;
  return { supabase, user: data.user };
}

/** Follows a link to where it leads; relative to the server under test, whatever host the link names. */
export async function follow(link: string): Promise<URL> {
  const url = new URL(link);
  const target = url.pathname.startsWith("/auth/v1/") ? `${project.url}${url.pathname}${url.search}` : link;
  const answer = await fetch(target, { redirect: "manual" });
  const location = answer.headers.get("location");
  if (!location) throw new Error(`${link} leads nowhere: ${answer.status} ${await answer.text()}`);
  return new URL(location);
}

/** Goes through a provider from the URL where a sign-in begins to where it ends. */
export async function throughProvider(begin: string): Promise<URL> {
  return backFromProvider(await follow(begin));
}

/** Comes back from the provider's page, where the user has consented. */
export function backFromProvider(provider: URL): Promise<URL> {
  return follow(`${project.url}/auth/v1/callback?code=c&state=${provider.searchParams.get("state") ?? ""}`);
}
