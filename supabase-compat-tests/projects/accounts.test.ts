/** Settings of `[auth]`: passwords, mail, anonymous accounts, a hook; a trigger on `auth.users`. */
import { expect, test } from "vitest";
import { found, project } from "./started";

const here = project("accounts");
const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>;

test("passwords must meet the configured rules", async () => {
  const auth = here.client().auth;
  for (const password of ["short1", "letters-only-here"]) {
    const { error } = await auth.signUp({ email: "weak@compat.test", password });
    expect(error?.code, password).toBe("weak_password");
  }
});

test("a sign-up mails the project's template and returns a session with the hook's claim", async () => {
  const client = here.client();
  const email = "ada@compat.test";
  const { data, error } = await client.auth.signUp({ email, password: "countess-1815", options: { data: { nickname: "Ada" } } });
  expect(error).toBeNull();
  expect(data.session).toBeNull();
  const mail = await found("the mail", async () => {
    const list = (await (await fetch(`${here.url("MAILPIT_URL")}/api/v1/search?query=to:${email}`)).json()) as { messages: { ID: string; Subject: string }[] };
    return list.messages[0];
  });
  expect(mail.Subject).toBe("Welcome to the compat club");
  const { HTML } = (await (await fetch(`${here.url("MAILPIT_URL")}/api/v1/message/${mail.ID}`)).json()) as { HTML: string };
  expect(HTML).toContain("Hello Ada");
  expect(HTML).toMatch(/<b>\d{8}<\/b>/);
  const hash = /https:\/\/app\.compat\.test\/confirm\?token_hash=([^"]+)/.exec(HTML)?.[1] ?? "";
  const verified = await client.auth.verifyOtp({ type: "email", token_hash: hash });
  expect(verified.error).toBeNull();
  const token = claims(verified.data.session?.access_token ?? "");
  expect(token).toMatchObject({ plan: "free", email, role: "authenticated" });
  expect(Number(token.exp) - Number(token.iat)).toBe(1234);
  const plans = await client.from("plans").select("plan");
  expect(plans.data).toEqual([{ plan: "free" }]);
});

test("anonymous accounts are allowed", async () => {
  const { data, error } = await here.client().auth.signInAnonymously();
  expect(error).toBeNull();
  expect(data.user?.is_anonymous).toBe(true);
});
