import { describe, expect, it } from "vitest";
import { PASSWORD, anon, freshEmail, linkIn, mailTo, project, service, signedUp } from "./project.js";

describe("sign-up and sign-in", () => {
  it("returns a session whose token carries the user's claims", async () => {
    const { session, user, email } = await signedUp("Ada");
    expect(user.email).toBe(email);
    expect(user.user_metadata).toMatchObject({ full_name: "Ada", email });
    expect(user.app_metadata).toEqual({ provider: "email", providers: ["email"] });
    expect(user.identities).toHaveLength(1);
    const claims = JSON.parse(Buffer.from(session.access_token.split(".")[1] ?? "", "base64url").toString());
    expect(claims).toMatchObject({ sub: user.id, role: "authenticated", aud: "authenticated", aal: "aal1", email });
    expect(session.token_type).toBe("bearer");
    expect(session.expires_in).toBe(3600);
  });

  it("signs in with the right password and otherwise only says 'invalid'", async () => {
    const { email } = await signedUp();
    const right = await anon().auth.signInWithPassword({ email, password: PASSWORD });
    expect(right.error).toBeNull();
    expect(right.data.user?.last_sign_in_at).toBeTruthy();
    for (const attempt of [{ email, password: "wrong-Horse-7" }, { email: freshEmail("nobody"), password: PASSWORD }]) {
      const { error } = await anon().auth.signInWithPassword(attempt);
      expect(error).toMatchObject({ status: 400, code: "invalid_credentials", message: "Invalid login credentials" });
    }
  });

  it("rejects a taken email, a short password and a malformed email", async () => {
    const { email } = await signedUp();
    const taken = await anon().auth.signUp({ email, password: PASSWORD });
    expect(taken.error).toMatchObject({ status: 422, code: "user_already_exists", message: "User already registered" });
    const short = await anon().auth.signUp({ email: freshEmail(), password: "short" });
    expect(short.error).toMatchObject({ status: 422, code: "weak_password", name: "AuthWeakPasswordError" });
    const malformed = await anon().auth.signUp({ email: "not-an-address", password: PASSWORD });
    expect(malformed.error).toMatchObject({ status: 400, code: "validation_failed" });
  });
});

describe("sessions", () => {
  it("refreshes once per token and returns a working pair", async () => {
    const { supabase, session } = await signedUp();
    const { data, error } = await supabase.auth.refreshSession({ refresh_token: session.refresh_token });
    expect(error).toBeNull();
    expect(data.session?.refresh_token).not.toBe(session.refresh_token);
    const again = await anon().auth.getUser(data.session?.access_token);
    expect(again.data.user?.id).toBe(data.user?.id);
  });

  it("rejects an unknown refresh token", async () => {
    const { error } = await anon().auth.refreshSession({ refresh_token: "aaaaaaaaaaaa" });
    expect(error).toMatchObject({ status: 400, code: "refresh_token_not_found" });
  });

  it("invalidates the access token for this API at logout", async () => {
    const { supabase, session } = await signedUp();
    expect((await supabase.auth.signOut()).error).toBeNull();
    const { error } = await anon().auth.getUser(session.access_token);
    expect(error).toMatchObject({ name: "AuthSessionMissingError" });
  });

  it("rejects a forged token", async () => {
    const { session } = await signedUp();
    const forged = session.access_token.slice(0, -4) + (session.access_token.endsWith("AAAA") ? "BBBB" : "AAAA");
    const { error } = await anon().auth.getUser(forged);
    expect(error).toMatchObject({ status: 403, code: "bad_jwt" });
  });
});

describe("the user's own data", () => {
  it("updates metadata and the password, after which only the new password works", async () => {
    const { supabase, email } = await signedUp();
    const updated = await supabase.auth.updateUser({ data: { full_name: "Grace", phone: "555" } });
    expect(updated.data.user?.user_metadata).toMatchObject({ full_name: "Grace", phone: "555" });
    const changed = await supabase.auth.updateUser({ password: "another-Horse-8" });
    expect(changed.error).toBeNull();
    expect((await anon().auth.signInWithPassword({ email, password: PASSWORD })).error?.code).toBe("invalid_credentials");
    expect((await anon().auth.signInWithPassword({ email, password: "another-Horse-8" })).error).toBeNull();
  });

  it("rejects the same password", async () => {
    const { supabase } = await signedUp();
    const { error } = await supabase.auth.updateUser({ password: PASSWORD });
    expect(error).toMatchObject({ status: 422, code: "same_password" });
  });
});

describe("password recovery", () => {
  it("mails a link to a session that can set a new password", async () => {
    const { email } = await signedUp();
    const { error } = await anon().auth.resetPasswordForEmail(email, { redirectTo: `${project.url}/reset-password` });
    expect(error).toBeNull();
    const link = linkIn(await mailTo(email, /reset/i));
    const answer = await fetch(link, { redirect: "manual" });
    expect(answer.status).toBe(303);
    const target = new URL(answer.headers.get("location") ?? "");
    expect(target.pathname).toBe("/reset-password");
    const fragment = new URLSearchParams(target.hash.slice(1));
    expect(fragment.get("type")).toBe("recovery");
    const supabase = anon();
    const session = await supabase.auth.setSession({
      access_token: fragment.get("access_token") ?? "",
      refresh_token: fragment.get("refresh_token") ?? "",
    });
    expect(session.error).toBeNull();
    expect((await supabase.auth.updateUser({ password: "recovered-Horse-9" })).error).toBeNull();
    expect((await anon().auth.signInWithPassword({ email, password: "recovered-Horse-9" })).error).toBeNull();

    const replay = await fetch(link, { redirect: "manual" });
    expect(new URL(replay.headers.get("location") ?? "").hash).toContain("error_code=otp_expired");
  });

  it("answers the same for an unknown email", async () => {
    const { data, error } = await anon().auth.resetPasswordForEmail(freshEmail("nobody"));
    expect({ data, error }).toEqual({ data: {}, error: null });
  });
});

describe("one-time codes", () => {
  it("can be used once", async () => {
    const { email } = await signedUp();
    const { data } = await service().auth.admin.generateLink({ type: "magiclink", email });
    const code = data.properties?.email_otp ?? "";
    expect(code).toMatch(/^\d{6}$/);
    const wrong = await anon().auth.verifyOtp({ email, token: code === "000000" ? "000001" : "000000", type: "email" });
    expect(wrong.error).toMatchObject({ status: 403, code: "otp_expired" });
    const first = await anon().auth.verifyOtp({ email, token: code, type: "email" });
    expect(first.data.session?.access_token).toBeTruthy();
    const second = await anon().auth.verifyOtp({ email, token: code, type: "email" });
    expect(second.error).toMatchObject({ status: 403, code: "otp_expired" });
  });

  it("are mailed with a link that signs in", async () => {
    const { email } = await signedUp();
    expect((await anon().auth.signInWithOtp({ email, options: { shouldCreateUser: false } })).error).toBeNull();
    const answer = await fetch(linkIn(await mailTo(email, /sign/i)), { redirect: "manual" });
    expect(new URL(answer.headers.get("location") ?? "").hash).toContain("access_token=");
  });
});

describe("administration", () => {
  it("creates, reads, updates, lists and deletes users with the service key", async () => {
    const { admin } = service().auth;
    const email = freshEmail("managed");
    const created = await admin.createUser({ email, password: PASSWORD, email_confirm: true, user_metadata: { a: 1 } });
    const id = created.data.user?.id ?? "";
    expect(created.data.user).toMatchObject({ email, user_metadata: { a: 1 } });
    expect((await admin.getUserById(id)).data.user?.email).toBe(email);
    expect((await admin.updateUserById(id, { user_metadata: { b: 2 } })).data.user?.user_metadata).toMatchObject({ a: 1, b: 2 });
    const { data } = await admin.listUsers({ page: 1, perPage: 1 });
    expect(data.users).toHaveLength(1);
    expect((await admin.deleteUser(id)).error).toBeNull();
    expect((await admin.getUserById(id)).error).toMatchObject({ status: 404, code: "user_not_found" });
  });

  it("rejects all other keys", async () => {
    const { supabase } = await signedUp();
    const { error } = await supabase.auth.admin.listUsers();
    expect(error).toMatchObject({ status: 403, code: "not_admin" });
  });

  it("generates a link that signs in", async () => {
    const { email } = await signedUp();
    const { data } = await service().auth.admin.generateLink({ type: "magiclink", email });
    const verified = await anon().auth.verifyOtp({ type: "magiclink", token_hash: data.properties?.hashed_token ?? "" });
    expect(verified.data.user?.email).toBe(email);
  });
});
