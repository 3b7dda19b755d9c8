/** The signed-in user's own account. */
import { expect } from "vitest";
import { anon, freshEmail, linkIn, mailTo, PASSWORD, signedUp } from "../../project";
import { backFromProvider, follow, type Journeys, NOBODY, present } from "../journey";
import { idToken, signedInAtGitHub } from "../outside";

export const account: Journeys = {
  "auth.getUser": {
    async succeeds() {
      const { supabase, user, email } = await signedUp();
      const { data, error } = await supabase.auth.getUser();
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ id: user.id, email, aud: "authenticated", role: "authenticated" });
    },
    async fails() {
      const { error } = await anon().auth.getUser("no.such.token");
      expect(error).toMatchObject({ status: 403, code: "bad_jwt" });
    },
  },
  "auth.updateUser": {
    async succeeds() {
      const { supabase, email } = await signedUp();
      const { data } = await supabase.auth.updateUser({ password: "another-Horse-8", data: { team: "red" } });
      expect(data.user?.user_metadata).toMatchObject({ team: "red" });
      expect((await anon().auth.signInWithPassword({ email, password: "another-Horse-8" })).error).toBeNull();
      const other = freshEmail("moved");
      const options = { emailRedirectTo: "http://localhost:3000/moved" };
      expect((await supabase.auth.updateUser({ email: other }, options)).data.user?.new_email).toBe(other);
      const end = await follow(linkIn(await mailTo(other, /confirm/i)).href);
      expect(end.pathname).toBe("/moved");
    },
    async fails() {
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.updateUser({ password: PASSWORD });
      expect(error).toMatchObject({ status: 422, code: "same_password" });
      expect((await anon().auth.updateUser({ data: {} })).error?.name).toBe("AuthSessionMissingError");
    },
  },
  "auth.reauthenticate": {
    async succeeds() {
      const { supabase, email } = await signedUp();
      expect((await supabase.auth.reauthenticate()).error).toBeNull();
      expect((await mailTo(email, /verification code/i)).subject).toMatch(/\d{6}/);
    },
    async fails() {
      const supabase = anon();
      await supabase.auth.signInAnonymously();
      expect((await supabase.auth.reauthenticate()).error).toMatchObject({ status: 400, code: "validation_failed" });
    },
  },
  "auth.getUserIdentities": {
    async succeeds() {
      const { supabase, user } = await signedUp();
      const { data, error } = await supabase.auth.getUserIdentities();
      expect(error).toBeNull();
      expect(data?.identities).toMatchObject([{ provider: "email", id: user.id, user_id: user.id }]);
    },
    async fails() {
      expect((await anon().auth.getUserIdentities()).error?.name).toBe("AuthSessionMissingError");
    },
  },
  "auth.linkIdentity": {
    async succeeds() {
      const { supabase, email } = await signedUp();
      signedInAtGitHub(email);
      const { data, error } = await supabase.auth.linkIdentity({ provider: "github" });
      expect(error).toBeNull();
      await backFromProvider(new URL(present(data.url, "url")));
      const linked = await supabase.auth.linkIdentity({ provider: "keycloak", token: idToken(email) });
      expect(linked.error).toBeNull();
      const { data: own } = await supabase.auth.getUserIdentities();
      expect(own?.identities.map(({ provider }) => provider).sort()).toEqual(["email", "github", "keycloak"]);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { error } = await supabase.auth.linkIdentity({ provider: "google" });
      expect(error).toMatchObject({ status: 400, code: "validation_failed" });
      const taken = freshEmail("taken");
      await anon().auth.signInWithIdToken({ provider: "keycloak", token: idToken(taken) });
      const second = await supabase.auth.linkIdentity({ provider: "keycloak", token: idToken(taken) });
      expect(second.error).toMatchObject({ status: 422, code: "identity_already_exists" });
    },
  },
  "auth.unlinkIdentity": {
    async succeeds() {
      const { supabase, email } = await signedUp();
      await supabase.auth.linkIdentity({ provider: "keycloak", token: idToken(email) });
      const { data } = await supabase.auth.getUserIdentities();
      const linked = present(data?.identities.find(({ provider }) => provider === "keycloak"), "identity");
      expect((await supabase.auth.unlinkIdentity(linked)).error).toBeNull();
      expect((await supabase.auth.getUserIdentities()).data?.identities).toHaveLength(1);
    },
    async fails() {
      const { supabase } = await signedUp();
      const { data } = await supabase.auth.getUserIdentities();
      const own = present(data?.identities[0], "identity");
      expect((await supabase.auth.unlinkIdentity(own)).error).toMatchObject({ status: 422, code: "single_identity_not_deletable" });
      const unknown = { ...own, identity_id: NOBODY };
      expect((await supabase.auth.unlinkIdentity(unknown)).error).toMatchObject({ status: 422 });
    },
  },
};
