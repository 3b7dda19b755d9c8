/** Recovery codes of second factors, experimental in the client. */
import { expect } from "vitest";
import { anon, client, PASSWORD, signedUp } from "../../project";
import { type Journeys, present, totp } from "../journey";

/** A client that asks for recovery codes, which it does not unless told to. */
function asking() {
  const experimental = { recoveryCodes: true } as never;
  return client(undefined, { persistSession: false, autoRefreshToken: false, experimental });
}

/** A signed-up user of the first level. */
async function newcomer() {
  const user = await signedUp("recovery");
  const supabase = asking();
  await supabase.auth.setSession(user.session);
  return { ...user, supabase };
}

/** A user at the second level with a proven factor. */
async function proven() {
  const user = await newcomer();
  const { data, error } = await user.supabase.auth.mfa.enroll({ factorType: "totp", friendlyName: "clock" });
  if (error) throw error;
  const raised = await user.supabase.auth.mfa.challengeAndVerify({ factorId: data.id, code: totp(data.totp.secret) });
  if (raised.error) throw raised.error;
  return { ...user, factorId: data.id };
}

/** That user with codes. */
async function withCodes() {
  const user = await proven();
  const { data, error } = await user.supabase.auth.mfa.recoveryCodes.generate();
  if (error) throw error;
  return { ...user, codes: data.codes, codesId: data.id };
}

const NOT_ENROLLED = { status: 404, code: "mfa_factor_not_found", message: "The user has not enrolled recovery codes" };

export const recoveryCodes: Journeys = {
  "auth.mfa.recoveryCodes.getStatus": {
    async succeeds() {
      const { supabase, codesId } = await withCodes();
      const { data, error } = await supabase.auth.mfa.recoveryCodes.getStatus();
      expect(error).toBeNull();
      expect(data).toEqual({ id: codesId, type: "recovery_code", total: 10, remaining: 10 });
    },
    async fails() {
      await expect(anon().auth.mfa.recoveryCodes.getStatus()).rejects.toThrow(/experimental/);
      const { supabase } = await newcomer();
      expect((await supabase.auth.mfa.recoveryCodes.getStatus()).error).toMatchObject(NOT_ENROLLED);
    },
  },
  "auth.mfa.recoveryCodes.generate": {
    async succeeds() {
      const { supabase } = await proven();
      const { data, error } = await supabase.auth.mfa.recoveryCodes.generate({ friendlyName: "safe" });
      expect(error).toBeNull();
      expect(data).toMatchObject({ type: "recovery_code", friendly_name: "safe", total: 10 });
      expect(new Set(data?.codes).size).toBe(10);
      for (const code of data?.codes ?? []) expect(code).toMatch(/^[a-z2-7]{16}$/);
    },
    async fails() {
      const { supabase } = await newcomer();
      const { error } = await supabase.auth.mfa.recoveryCodes.generate();
      expect(error).toMatchObject({ status: 403, code: "insufficient_aal", message: "AAL2 required to generate recovery codes" });
    },
  },
  "auth.mfa.recoveryCodes.verify": {
    async succeeds() {
      const { email, codes } = await withCodes();
      const lost = asking();
      await lost.auth.signInWithPassword({ email, password: PASSWORD });
      const typed = present(codes[0], "code").toUpperCase().replace(/(.{4})/g, "$1-");
      expect((await lost.auth.mfa.recoveryCodes.verify({ code: typed })).error).toBeNull();
      const claims = (await lost.auth.getClaims()).data?.claims;
      expect(claims?.aal).toBe("aal2");
      expect(claims?.amr).toContainEqual(expect.objectContaining({ method: "mfa/recovery_code" }));
      expect((await lost.auth.mfa.recoveryCodes.getStatus()).data).toMatchObject({ total: 10, remaining: 9 });
    },
    async fails() {
      const { email, codes } = await withCodes();
      const lost = asking();
      await lost.auth.signInWithPassword({ email, password: PASSWORD });
      const wrong = { status: 422, code: "mfa_verification_failed", message: "Invalid recovery code entered" };
      expect((await lost.auth.mfa.recoveryCodes.verify({ code: "aaaaaaaaaaaaaaaa" })).error).toMatchObject(wrong);
      const code = present(codes[0], "code");
      expect((await lost.auth.mfa.recoveryCodes.verify({ code })).error).toBeNull();
      expect((await lost.auth.mfa.recoveryCodes.verify({ code })).error).toMatchObject(wrong);
    },
  },
  "auth.mfa.recoveryCodes.regenerate": {
    async succeeds() {
      const { supabase, codes, codesId } = await withCodes();
      const { data, error } = await supabase.auth.mfa.recoveryCodes.regenerate();
      expect(error).toBeNull();
      expect(data).toMatchObject({ id: codesId, type: "recovery_code", total: 10 });
      expect(data?.codes.filter((code: string) => codes.includes(code))).toEqual([]);
    },
    async fails() {
      const { supabase } = await proven();
      expect((await supabase.auth.mfa.recoveryCodes.regenerate()).error).toMatchObject(NOT_ENROLLED);
    },
  },
  "auth.mfa.recoveryCodes.unenroll": {
    async succeeds() {
      const { supabase, codesId } = await withCodes();
      const { data, error } = await supabase.auth.mfa.recoveryCodes.unenroll();
      expect(error).toBeNull();
      expect(data).toEqual({ id: codesId });
    },
    async fails() {
      const { supabase, factorId } = await withCodes();
      const { error } = await supabase.auth.mfa.unenroll({ factorId });
      expect(error).toMatchObject({ status: 422, code: "mfa_recovery_codes_sole_factor" });
    },
  },
};
