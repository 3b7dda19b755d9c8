/** The ways in. */
import { generateKeyPairSync, sign } from "node:crypto";
import { expect } from "vitest";
import { anon, client, freshEmail, linkIn, mailTo, PASSWORD, project, service, signedUp } from "../../project";
import { inBrowser, SecurityKey } from "../authenticator";
import { follow, made, type Journeys, NOBODY, present, throughProvider } from "../journey";
import { idToken, signedInAtGitHub } from "../outside";

/** A client that remembers its verifier, as a page does. */
function pkceClient() {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  const auth = { flowType: "pkce" as const, storage, autoRefreshToken: false, detectSessionInUrl: false };
  return client(project.anonKey, auth);
}

/** A wallet of Solana as pages see one. */
function wallet() {
  const keys = generateKeyPairSync("ed25519");
  const raw = keys.publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return {
    publicKey: { toBase58: () => base58(raw) },
    signMessage: async (message: Uint8Array) => new Uint8Array(sign(null, message, keys.privateKey)),
  };
}

function base58(bytes: Uint8Array): string {
  const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  let number = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (; number > 0n; number /= 58n) text = (alphabet[Number(number % 58n)] ?? "") + text;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(Math.max(zeros, 0)) + text;
}

export const signingIn: Journeys = {
  "auth.signUp": {
    async succeeds() {
      const email = freshEmail("new");
      const supabase = anon();
      const { data, error } = await supabase.auth.signUp({ email, password: PASSWORD, options: { data: { team: "red" } } });
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ email, user_metadata: { team: "red" } });
      expect((await supabase.auth.getUser()).data.user?.id).toBe(data.user?.id);
    },
    async fails() {
      const { data, error } = await anon().auth.signUp({ email: freshEmail(), password: "1" });
      expect(error).toMatchObject({ status: 422, code: "weak_password", reasons: ["length"] });
      expect(data).toEqual({ user: null, session: null });
    },
  },
  "auth.signInAnonymously": {
    async succeeds() {
      const { data, error } = await anon().auth.signInAnonymously({ options: { data: { theme: "dark" } } });
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ is_anonymous: true, user_metadata: { theme: "dark" }, identities: [] });
      expect(data.session?.refresh_token).toBeTruthy();
    },
    async fails() {
      const { error } = await anon().auth.signInAnonymously({ options: { data: "dark" as never } });
      expect(error).toMatchObject({ status: 400, code: "bad_json" });
    },
  },
  "auth.signInWithPassword": {
    async succeeds() {
      const { email, user } = await signedUp();
      const { data, error } = await anon().auth.signInWithPassword({ email, password: PASSWORD });
      expect(error).toBeNull();
      expect(data.user?.id).toBe(user.id);
      expect(data.session?.token_type).toBe("bearer");
    },
    async fails() {
      const { email } = await signedUp();
      const { data, error } = await anon().auth.signInWithPassword({ email, password: "wrong" });
      expect(error).toMatchObject({ status: 400, code: "invalid_credentials", message: "Invalid login credentials" });
      expect(data.session).toBeNull();
    },
  },
  "auth.signInWithOAuth": {
    async succeeds() {
      const email = freshEmail("hub");
      signedInAtGitHub(email);
      const options = { redirectTo: "http://localhost:3000/in", skipBrowserRedirect: true };
      const { data, error } = await anon().auth.signInWithOAuth({ provider: "github", options });
      expect(error).toBeNull();
      const end = await throughProvider(present(data.url, "url"));
      const fragment = new URLSearchParams(end.hash.slice(1));
      expect(`${end.origin}${end.pathname}`).toBe("http://localhost:3000/in");
      expect(fragment.get("provider_token")).toBe("hub");
      const { data: whom } = await anon().auth.getUser(fragment.get("access_token") ?? "");
      expect(whom.user).toMatchObject({ email, app_metadata: { provider: "github" } });
    },
    async fails() {
      const options = { skipBrowserRedirect: true };
      const { data } = await anon().auth.signInWithOAuth({ provider: "google", options });
      const answer = await fetch(present(data.url, "url"), { redirect: "manual" });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error_code: "validation_failed", msg: "Unsupported provider: provider is not enabled" });
    },
  },
  "auth.exchangeCodeForSession": {
    async succeeds() {
      const email = freshEmail("code");
      signedInAtGitHub(email);
      const supabase = pkceClient();
      const { data } = await supabase.auth.signInWithOAuth({ provider: "github", options: { skipBrowserRedirect: true } });
      const code = (await throughProvider(present(data.url, "url"))).searchParams.get("code");
      const exchanged = await supabase.auth.exchangeCodeForSession(present(code, "code"));
      expect(exchanged.error).toBeNull();
      expect(exchanged.data.session).toMatchObject({ provider_token: "hub", user: { email } });
    },
    async fails() {
      const supabase = pkceClient();
      await supabase.auth.signInWithOAuth({ provider: "github", options: { skipBrowserRedirect: true } });
      const { data, error } = await supabase.auth.exchangeCodeForSession(NOBODY);
      expect(error).toMatchObject({ status: 404, code: "flow_state_not_found" });
      expect(data.session).toBeNull();
    },
  },
  "auth.signInWithWeb3": {
    async succeeds() {
      const solana = wallet();
      const { data, error } = await anon().auth.signInWithWeb3({
        chain: "solana",
        statement: "Hello.",
        wallet: solana as never,
        options: { url: "http://localhost:3000/in" },
      });
      expect(error).toBeNull();
      expect(data.user?.identities?.[0]).toMatchObject({ provider: "web3", id: `web3:solana:${solana.publicKey.toBase58()}` });
    },
    async fails() {
      const signature = `0x${"00".repeat(65)}` as const;
      const message = `localhost:3000 says hello to your Ethereum account:\n${"x\n".repeat(40)}`;
      const { error } = await anon().auth.signInWithWeb3({ chain: "ethereum", message, signature });
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.signInWithIdToken": {
    async succeeds() {
      const email = freshEmail("realm");
      const { data, error } = await anon().auth.signInWithIdToken({ provider: "keycloak", token: idToken(email) });
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ email, app_metadata: { provider: "keycloak" } });
    },
    async fails() {
      const token = idToken(freshEmail("realm"), { aud: "other" });
      const { error } = await anon().auth.signInWithIdToken({ provider: "keycloak", token });
      expect(error).toMatchObject({ status: 400, message: "Unacceptable audience in id_token: [other]" });
    },
  },
  "auth.signInWithOtp": {
    async succeeds() {
      const { email, user } = await signedUp();
      const { data, error } = await anon().auth.signInWithOtp({ email, options: { emailRedirectTo: "http://localhost:3000/in" } });
      expect({ data, error }).toEqual({ data: { user: null, session: null, messageId: undefined }, error: null });
      const end = await follow(linkIn(await mailTo(email, /sign/i)).href);
      expect(`${end.origin}${end.pathname}`).toBe("http://localhost:3000/in");
      const token = new URLSearchParams(end.hash.slice(1)).get("access_token");
      expect((await anon().auth.getUser(present(token, "token"))).data.user?.id).toBe(user.id);
    },
    async fails() {
      const { error } = await anon().auth.signInWithOtp({ email: freshEmail(), options: { shouldCreateUser: false } });
      expect(error).toMatchObject({ status: 422, code: "otp_disabled" });
    },
  },
  "auth.verifyOtp": {
    async succeeds() {
      const phone = "15555550100";
      const sent = await anon().auth.signInWithOtp({ phone });
      expect(sent.error).toBeNull();
      const { data, error } = await anon().auth.verifyOtp({ phone, token: "123456", type: "sms" });
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ phone });
    },
    async fails() {
      const { error } = await anon().auth.verifyOtp({ email: freshEmail(), token: "123456", type: "email" });
      expect(error).toMatchObject({ status: 403, code: "otp_expired", message: "Token has expired or is invalid" });
    },
  },
  "auth.signInWithSSO": {
    /** No identity provider for SAML can be had here: the journey ends at the server's word about it. */
    async succeeds() {
      const { data, error } = await anon().auth.signInWithSSO({ domain: "nobody.test" });
      expect(data).toBeNull();
      expect(error).toMatchObject({ status: 404 });
      expect(["saml_provider_disabled", "sso_provider_not_found"]).toContain(error?.code);
    },
    async fails() {
      const { error } = await anon().auth.signInWithSSO({ providerId: NOBODY });
      expect(error).toMatchObject({ status: 404 });
    },
  },
  "auth.signInWithPasskey": {
    async succeeds() {
      const { supabase, user } = await signedUp();
      const key = new SecurityKey();
      await inBrowser(key, async () => {
        expect((await supabase.auth.registerPasskey()).error).toBeNull();
        const { data, error } = await anon().auth.signInWithPasskey();
        expect(error).toBeNull();
        expect(data?.user?.id).toBe(user.id);
      });
    },
    async fails() {
      const stranger = new SecurityKey();
      stranger.create("AAAA", Buffer.from(NOBODY).toString("base64url"));
      const { error } = await inBrowser(stranger, () => anon().auth.signInWithPasskey());
      expect(error).toMatchObject({ status: 400, code: "webauthn_verification_failed" });
    },
  },
  "auth.registerPasskey": {
    async succeeds() {
      const { supabase } = await signedUp();
      const { data, error } = await inBrowser(new SecurityKey(), () => supabase.auth.registerPasskey());
      expect(error).toBeNull();
      expect((await supabase.auth.passkey.list()).data).toMatchObject([{ id: present(data, "passkey").id }]);
    },
    async fails() {
      const { error } = await inBrowser(new SecurityKey(), () => anon().auth.registerPasskey());
      expect(error).toMatchObject({ name: "AuthSessionMissingError" });
    },
  },
  "auth.resend": {
    async succeeds() {
      const email = freshEmail("waiting");
      await service().auth.admin.createUser({ email, password: PASSWORD });
      const { error } = await anon().auth.resend({ type: "signup", email });
      expect(error).toBeNull();
      const end = await follow(linkIn(await mailTo(email, /confirm/i)).href);
      expect(new URLSearchParams(end.hash.slice(1)).get("type")).toBe("signup");
    },
    async fails() {
      const { error } = await anon().auth.resend({ type: "sms", phone: "ada" });
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.resetPasswordForEmail": {
    async succeeds() {
      const email = freshEmail("forgot");
      await made(email);
      expect((await anon().auth.resetPasswordForEmail(email)).error).toBeNull();
      const end = await follow(linkIn(await mailTo(email, /reset/i)).href);
      expect(new URLSearchParams(end.hash.slice(1)).get("type")).toBe("recovery");
    },
    async fails() {
      const { error } = await anon().auth.resetPasswordForEmail("ada@");
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
};
