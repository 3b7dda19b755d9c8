/** Passkeys step by step. */
import { expect } from "vitest";
import { anon, client, service, signedUp } from "../../project";
import { SecurityKey } from "../authenticator";
import { type Journeys, NOBODY, present } from "../journey";

/** A user with a passkey. */
async function withPasskey() {
  const { supabase, user } = await signedUp("passkey");
  const key = new SecurityKey();
  const { data } = await supabase.auth.passkey.startRegistration();
  const { challenge_id: challengeId, options } = present(data, "options");
  const credential = key.create(options.challenge, options.user.id) as never;
  const registered = await supabase.auth.passkey.verifyRegistration({ challengeId, credential });
  if (registered.error) throw registered.error;
  return { supabase, user, key, passkeyId: present(registered.data, "passkey").id };
}

export const passkeys: Journeys = {
  "auth.passkey.startRegistration": {
    async succeeds() {
      const { supabase, email } = await signedUp();
      const { data, error } = await supabase.auth.passkey.startRegistration();
      expect(error).toBeNull();
      expect(data?.options).toMatchObject({ rp: { id: "localhost" }, user: { name: email } });
    },
    async fails() {
      const supabase = anon();
      await supabase.auth.signInAnonymously();
      expect((await supabase.auth.passkey.startRegistration()).error).toMatchObject({ status: 403, code: "no_authorization" });
    },
  },
  "auth.passkey.verifyRegistration": {
    async succeeds() {
      const { supabase, passkeyId } = await withPasskey();
      expect((await supabase.auth.passkey.list()).data).toMatchObject([{ id: passkeyId }]);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { challenge_id: challengeId, options } = present((await supabase.auth.passkey.startRegistration()).data, "options");
      const credential = new SecurityKey().create("AAAA", options.user.id) as never;
      const { error } = await supabase.auth.passkey.verifyRegistration({ challengeId, credential });
      expect(error).toMatchObject({ status: 400, code: "webauthn_verification_failed" });
    },
  },
  "auth.passkey.startAuthentication": {
    async succeeds() {
      const { data, error } = await anon().auth.passkey.startAuthentication();
      expect(error).toBeNull();
      expect(data?.options).toMatchObject({ rpId: "localhost" });
    },
    async fails() {
      const { error } = await client("no-such-key").auth.passkey.startAuthentication();
      expect(error).toMatchObject({ status: 401, message: "Invalid API key" });
    },
  },
  "auth.passkey.verifyAuthentication": {
    async succeeds() {
      const { user, key } = await withPasskey();
      const supabase = anon();
      const { challenge_id: challengeId, options } = present((await supabase.auth.passkey.startAuthentication()).data, "options");
      const credential = key.get(options.challenge) as never;
      const { data, error } = await supabase.auth.passkey.verifyAuthentication({ challengeId, credential });
      expect(error).toBeNull();
      expect(data?.user?.id).toBe(user.id);
      expect((await supabase.auth.getUser()).data.user?.id).toBe(user.id);
      const again = await supabase.auth.passkey.verifyAuthentication({ challengeId, credential });
      expect(again.error).toMatchObject({ status: 400, code: "webauthn_challenge_not_found" });
    },
    async fails() {
      const { key } = await withPasskey();
      const { challenge_id: challengeId } = present((await anon().auth.passkey.startAuthentication()).data, "options");
      const credential = key.get("AAAA") as never;
      const { error } = await anon().auth.passkey.verifyAuthentication({ challengeId, credential });
      expect(error).toMatchObject({ status: 400, code: "webauthn_verification_failed" });
    },
  },
  "auth.passkey.list": {
    async succeeds() {
      const { supabase, passkeyId } = await withPasskey();
      expect((await supabase.auth.passkey.list()).data).toMatchObject([{ id: passkeyId, friendly_name: "Passkey" }]);
    },
    async fails() {
      expect((await anon().auth.passkey.list()).error?.name).toBe("AuthSessionMissingError");
    },
  },
  "auth.passkey.update": {
    async succeeds() {
      const { supabase, passkeyId } = await withPasskey();
      const { data, error } = await supabase.auth.passkey.update({ passkeyId, friendlyName: "mine" });
      expect(error).toBeNull();
      expect(data).toMatchObject({ id: passkeyId, friendly_name: "mine" });
    },
    async fails() {
      const [{ passkeyId }, other] = [await withPasskey(), await signedUp()];
      const { error } = await other.supabase.auth.passkey.update({ passkeyId, friendlyName: "mine" });
      expect(error).toMatchObject({ status: 404, code: "validation_failed", message: "Passkey not found" });
    },
  },
  "auth.passkey.delete": {
    async succeeds() {
      const { supabase, passkeyId } = await withPasskey();
      expect((await supabase.auth.passkey.delete({ passkeyId })).error).toBeNull();
      expect((await supabase.auth.passkey.list()).data).toEqual([]);
    },
    async fails() {
      const { supabase } = await signedUp();
      expect((await supabase.auth.passkey.delete({ passkeyId: NOBODY })).error).toMatchObject({ status: 404 });
    },
  },
  "auth.admin.passkey.listPasskeys": {
    async succeeds() {
      const { user, passkeyId } = await withPasskey();
      const { data, error } = await service().auth.admin.passkey.listPasskeys({ userId: user.id });
      expect(error).toBeNull();
      expect(data).toMatchObject([{ id: passkeyId }]);
    },
    async fails() {
      const { error } = await service().auth.admin.passkey.listPasskeys({ userId: NOBODY });
      expect(error).toMatchObject({ status: 404, code: "user_not_found" });
    },
  },
  "auth.admin.passkey.deletePasskey": {
    async succeeds() {
      const { supabase, user, passkeyId } = await withPasskey();
      expect((await service().auth.admin.passkey.deletePasskey({ userId: user.id, passkeyId })).error).toBeNull();
      expect((await supabase.auth.passkey.list()).data).toEqual([]);
    },
    async fails() {
      const { supabase, user, passkeyId } = await withPasskey();
      const { error } = await supabase.auth.admin.passkey.deletePasskey({ userId: user.id, passkeyId });
      expect(error).toMatchObject({ status: 403, code: "not_admin" });
    },
  },
};
