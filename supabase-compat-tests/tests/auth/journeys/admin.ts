/** What administrators do with users. */
import { expect } from "vitest";
import { anon, freshEmail, linkIn, mailTo, PASSWORD, service, signedUp } from "../../project";
import { follow, type Journeys, NOBODY, present, withFactor } from "../journey";

export const admin: Journeys = {
  "auth.admin.createUser": {
    async succeeds() {
      const email = freshEmail("made");
      const { data, error } = await service().auth.admin.createUser({ email, password: PASSWORD, email_confirm: true, app_metadata: { team: "red" } });
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ email, app_metadata: { team: "red", provider: "email" } });
      expect((await anon().auth.signInWithPassword({ email, password: PASSWORD })).error).toBeNull();
    },
    async fails() {
      const { email } = await signedUp();
      const { error } = await service().auth.admin.createUser({ email });
      expect(error).toMatchObject({ status: 422, code: "email_exists" });
    },
  },
  "auth.admin.getUserById": {
    async succeeds() {
      const { user, email } = await signedUp();
      expect((await service().auth.admin.getUserById(user.id)).data.user).toMatchObject({ id: user.id, email });
    },
    async fails() {
      expect((await service().auth.admin.getUserById(NOBODY)).error).toMatchObject({ status: 404, code: "user_not_found" });
    },
  },
  "auth.admin.listUsers": {
    async succeeds() {
      await signedUp();
      await signedUp();
      const { data, error } = await service().auth.admin.listUsers({ page: 1, perPage: 1 });
      expect(error).toBeNull();
      expect(data.users).toHaveLength(1);
      expect(data).toMatchObject({ nextPage: 2, aud: "authenticated" });
      expect("total" in data && data.total).toBeGreaterThan(1);
    },
    async fails() {
      const { error } = await anon().auth.admin.listUsers();
      expect(error).toMatchObject({ status: 403, code: "not_admin" });
    },
  },
  "auth.admin.updateUserById": {
    async succeeds() {
      const { user, supabase } = await signedUp();
      const { data } = await service().auth.admin.updateUserById(user.id, { user_metadata: { a: 1 }, ban_duration: "1h" });
      expect(data.user).toMatchObject({ user_metadata: { a: 1 } });
      expect((await supabase.auth.getUser()).error).toMatchObject({ status: 403, code: "user_banned" });
    },
    async fails() {
      const { user } = await signedUp();
      const { error } = await service().auth.admin.updateUserById(user.id, { password: "1" });
      expect(error).toMatchObject({ status: 422, code: "weak_password" });
    },
  },
  "auth.admin.deleteUser": {
    async succeeds() {
      const { user, supabase } = await signedUp();
      expect((await service().auth.admin.deleteUser(user.id)).error).toBeNull();
      expect((await supabase.auth.getUser()).error).toMatchObject({ status: 403, code: "user_not_found" });
      const other = await signedUp();
      expect((await service().auth.admin.deleteUser(other.user.id, true)).error).toBeNull();
      expect((await anon().auth.signInWithPassword({ email: other.email, password: PASSWORD })).error).not.toBeNull();
    },
    async fails() {
      const { user, supabase } = await signedUp();
      expect((await supabase.auth.admin.deleteUser(user.id)).error).toMatchObject({ status: 403, code: "not_admin" });
      expect((await supabase.auth.getUser()).data.user?.id).toBe(user.id);
    },
  },
  "auth.admin.inviteUserByEmail": {
    async succeeds() {
      const email = freshEmail("guest");
      const options = { data: { team: "red" }, redirectTo: "http://localhost:3000/welcome" };
      const { data, error } = await service().auth.admin.inviteUserByEmail(email, options);
      expect(error).toBeNull();
      expect(data.user).toMatchObject({ email, user_metadata: { team: "red" } });
      expect(data.user?.invited_at).toBeTruthy();
      const end = await follow(linkIn(await mailTo(email, /invited/i)).href);
      expect(end.pathname).toBe("/welcome");
    },
    async fails() {
      const { email } = await signedUp();
      const { error } = await service().auth.admin.inviteUserByEmail(email);
      expect(error).toMatchObject({ status: 422, code: "email_exists" });
    },
  },
  "auth.admin.generateLink": {
    async succeeds() {
      const { email, user } = await signedUp();
      const { data, error } = await service().auth.admin.generateLink({ type: "recovery", email });
      expect(error).toBeNull();
      expect(data.user?.id).toBe(user.id);
      expect(data.properties).toMatchObject({ verification_type: "recovery" });
      const end = await follow(present(data.properties?.action_link, "link"));
      expect(new URLSearchParams(end.hash.slice(1)).get("type")).toBe("recovery");
    },
    async fails() {
      const { error } = await service().auth.admin.generateLink({ type: "recovery", email: freshEmail() });
      expect(error).toMatchObject({ status: 404, code: "user_not_found" });
    },
  },
  "auth.admin.signOut": {
    async succeeds() {
      const { supabase, session } = await signedUp();
      expect((await service().auth.admin.signOut(session.access_token, "global")).error).toBeNull();
      expect((await supabase.auth.getUser()).error?.name).toBe("AuthSessionMissingError");
    },
    async fails() {
      const { error } = await service().auth.admin.signOut("no.such.token");
      expect(error).toMatchObject({ status: 403, code: "bad_jwt" });
    },
  },
  "auth.admin.mfa.listFactors": {
    async succeeds() {
      const { user, factorId } = await withFactor();
      const { data, error } = await service().auth.admin.mfa.listFactors({ userId: user.id });
      expect(error).toBeNull();
      expect(data?.factors).toMatchObject([{ id: factorId, factor_type: "totp" }]);
    },
    async fails() {
      const { error } = await service().auth.admin.mfa.listFactors({ userId: NOBODY });
      expect(error).toMatchObject({ status: 404, code: "user_not_found" });
    },
  },
  "auth.admin.mfa.deleteFactor": {
    async succeeds() {
      const { user, factorId, supabase } = await withFactor();
      expect((await service().auth.admin.mfa.deleteFactor({ id: factorId, userId: user.id })).error).toBeNull();
      expect((await supabase.auth.mfa.listFactors()).data?.all).toEqual([]);
    },
    async fails() {
      const { user } = await signedUp();
      const { error } = await service().auth.admin.mfa.deleteFactor({ id: NOBODY, userId: user.id });
      expect(error).toMatchObject({ status: 404, code: "mfa_factor_not_found" });
    },
  },
};
