/** Second factors: codes of a clock, security keys. */
import { expect } from "vitest";
import { anon, signedUp } from "../../project";
import { inBrowser, SecurityKey } from "../authenticator";
import { type Journeys, NOBODY, present, totp, withFactor, withProvenFactor } from "../journey";

const page = { rpId: "localhost", rpOrigins: ["http://localhost:3000"] };

/** A user with a proven security key. */
async function withKey() {
  const { supabase, user } = await signedUp("key");
  const key = new SecurityKey();
  const { error } = await inBrowser(key, () => supabase.auth.mfa.webauthn.register({ friendlyName: "key", webauthn: page }));
  if (error) throw error;
  const { data } = await supabase.auth.mfa.listFactors();
  return { supabase, user, key, factorId: present(data?.webauthn[0], "factor").id };
}

/** A user with a security key that has not proven itself. */
async function enrolledKey() {
  const { supabase } = await signedUp("key");
  const { data, error } = await supabase.auth.mfa.webauthn.enroll({ friendlyName: "key" });
  if (error) throw error;
  return { supabase, key: new SecurityKey(), factorId: data.id };
}

export const factors: Journeys = {
  "auth.mfa.enroll": {
    async succeeds() {
      const { supabase, email } = await signedUp();
      const { data, error } = await supabase.auth.mfa.enroll({ factorType: "totp", friendlyName: "clock", issuer: "Compat" });
      expect(error).toBeNull();
      expect(data).toMatchObject({ type: "totp", friendly_name: "clock" });
      expect(data?.totp.qr_code).toMatch(/^data:image\/svg\+xml;utf-8,/);
      expect(data?.totp.uri).toContain(`otpauth://totp/Compat:${email}?`);
    },
    async fails() {
      const { supabase } = await withFactor();
      const { error } = await supabase.auth.mfa.enroll({ factorType: "totp", friendlyName: "clock" });
      expect(error).toMatchObject({ status: 422, code: "mfa_factor_name_conflict" });
    },
  },
  "auth.mfa.challenge": {
    async succeeds() {
      const { supabase, factorId } = await withFactor();
      const { data, error } = await supabase.auth.mfa.challenge({ factorId });
      expect(error).toBeNull();
      expect(data).toMatchObject({ type: "totp" });
      expect(data?.expires_at).toBeGreaterThan(Date.now() / 1000 + 200);
    },
    async fails() {
      const [{ factorId }, other] = [await withFactor(), await signedUp()];
      const { error } = await other.supabase.auth.mfa.challenge({ factorId });
      expect(error).toMatchObject({ status: 404, code: "mfa_factor_not_found" });
    },
  },
  "auth.mfa.verify": {
    async succeeds() {
      const { supabase, factorId, secret } = await withFactor();
      const challengeId = present((await supabase.auth.mfa.challenge({ factorId })).data, "challenge").id;
      const { error } = await supabase.auth.mfa.verify({ factorId, challengeId, code: totp(secret) });
      expect(error).toBeNull();
      expect((await supabase.auth.getClaims()).data?.claims.aal).toBe("aal2");
    },
    async fails() {
      const { supabase, factorId, secret } = await withFactor();
      const challengeId = present((await supabase.auth.mfa.challenge({ factorId })).data, "challenge").id;
      const wrong = totp(secret) === "000000" ? "000001" : "000000";
      const { error } = await supabase.auth.mfa.verify({ factorId, challengeId, code: wrong });
      expect(error).toMatchObject({ status: 422, code: "mfa_verification_failed", message: "Invalid TOTP code entered" });
      expect((await supabase.auth.getClaims()).data?.claims.aal).toBe("aal1");
    },
  },
  "auth.mfa.challengeAndVerify": {
    async succeeds() {
      const { supabase, factorId, secret } = await withFactor();
      const { data, error } = await supabase.auth.mfa.challengeAndVerify({ factorId, code: totp(secret) });
      expect(error).toBeNull();
      expect(data?.user.factors).toMatchObject([{ id: factorId, status: "verified" }]);
    },
    async fails() {
      const { supabase, factorId } = await withFactor();
      const { error } = await supabase.auth.mfa.challengeAndVerify({ factorId, code: "" });
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.mfa.unenroll": {
    async succeeds() {
      const { supabase, factorId } = await withProvenFactor();
      const { data, error } = await supabase.auth.mfa.unenroll({ factorId });
      expect({ data, error }).toEqual({ data: { id: factorId }, error: null });
      expect((await supabase.auth.mfa.listFactors()).data?.all).toEqual([]);
    },
    async fails() {
      const { factorId, email } = await withProvenFactor();
      const weak = anon();
      await weak.auth.signInWithPassword({ email, password: "correct-Horse-7" });
      expect((await weak.auth.mfa.unenroll({ factorId })).error).toMatchObject({ status: 422, code: "insufficient_aal" });
    },
  },
  "auth.mfa.listFactors": {
    async succeeds() {
      const { supabase, factorId } = await withProvenFactor();
      const { data, error } = await supabase.auth.mfa.listFactors();
      expect(error).toBeNull();
      expect(data).toMatchObject({ totp: [{ id: factorId, status: "verified" }], phone: [] });
    },
    async fails() {
      expect((await anon().auth.mfa.listFactors()).error?.name).toBe("AuthSessionMissingError");
    },
  },
  "auth.mfa.getAuthenticatorAssuranceLevel": {
    async succeeds() {
      const { supabase, email } = await withProvenFactor();
      const strong = await supabase.auth.mfa.getAuthenticatorAssuranceLevel();
      expect(strong.data).toMatchObject({ currentLevel: "aal2", nextLevel: "aal2" });
      const weak = anon();
      await weak.auth.signInWithPassword({ email, password: "correct-Horse-7" });
      const { data } = await weak.auth.mfa.getAuthenticatorAssuranceLevel();
      expect(data).toMatchObject({ currentLevel: "aal1", nextLevel: "aal2" });
    },
    async fails() {
      const { data } = await anon().auth.mfa.getAuthenticatorAssuranceLevel();
      expect(data).toEqual({ currentLevel: null, nextLevel: null, currentAuthenticationMethods: [] });
    },
  },
  "auth.mfa.webauthn.enroll": {
    async succeeds() {
      const { supabase } = await signedUp();
      const { data, error } = await supabase.auth.mfa.webauthn.enroll({ friendlyName: "key" });
      expect(error).toBeNull();
      expect(data).toMatchObject({ type: "webauthn", friendly_name: "key" });
    },
    async fails() {
      const { supabase } = await enrolledKey();
      const { error } = await supabase.auth.mfa.webauthn.enroll({ friendlyName: "key" });
      expect(error).toMatchObject({ status: 422, code: "mfa_factor_name_conflict" });
    },
  },
  "auth.mfa.webauthn.challenge": {
    async succeeds() {
      const { supabase, key, factorId } = await enrolledKey();
      const { data, error } = await inBrowser(key, () => supabase.auth.mfa.webauthn.challenge({ factorId, webauthn: page }));
      expect(error).toBeNull();
      expect(data).toMatchObject({ factorId, webauthn: { type: "create" } });
    },
    async fails() {
      const { supabase } = await signedUp();
      const asked = inBrowser(new SecurityKey(), () => supabase.auth.mfa.webauthn.challenge({ factorId: NOBODY, webauthn: page }));
      expect((await asked).error).toMatchObject({ status: 404, code: "mfa_factor_not_found" });
    },
  },
  "auth.mfa.webauthn.verify": {
    async succeeds() {
      const { supabase, key, factorId } = await enrolledKey();
      await inBrowser(key, async () => {
        const asked = await supabase.auth.mfa.webauthn.challenge({ factorId, webauthn: page });
        const { challengeId, webauthn } = present(asked.data, "challenge");
        const { error } = await supabase.auth.mfa.webauthn.verify({ factorId, challengeId, webauthn: { ...page, ...webauthn } as never });
        expect(error).toBeNull();
      });
      expect((await supabase.auth.getClaims()).data?.claims.aal).toBe("aal2");
    },
    async fails() {
      const { supabase, key, factorId } = await enrolledKey();
      await inBrowser(key, async () => {
        const asked = await supabase.auth.mfa.webauthn.challenge({ factorId, webauthn: page });
        const { webauthn } = present(asked.data, "challenge");
        const answer = { factorId, challengeId: NOBODY, webauthn: { ...page, ...webauthn } as never };
        expect((await supabase.auth.mfa.webauthn.verify(answer)).error).toMatchObject({ status: 422, code: "mfa_factor_not_found" });
      });
    },
  },
  "auth.mfa.webauthn.register": {
    async succeeds() {
      const { supabase, factorId } = await withKey();
      const { data } = await supabase.auth.mfa.listFactors();
      expect(data?.webauthn).toMatchObject([{ id: factorId, status: "verified" }]);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.mfa.webauthn.register({ friendlyName: "key", webauthn: page });
      expect(error?.message).toBe("Browser does not support WebAuthn");
    },
  },
  "auth.mfa.webauthn.authenticate": {
    async succeeds() {
      const { supabase, key, factorId } = await withKey();
      const { error } = await inBrowser(key, () => supabase.auth.mfa.webauthn.authenticate({ factorId, webauthn: page }));
      expect(error).toBeNull();
    },
    async fails() {
      const { supabase, factorId } = await withKey();
      const answer = inBrowser(new SecurityKey(), () => supabase.auth.mfa.webauthn.authenticate({ factorId, webauthn: page }));
      expect((await answer).error).toMatchObject({ status: 422, code: "mfa_verification_failed" });
    },
  },
};
