/** Keeping, refreshing and ending a session. */
import type { AuthChangeEvent } from "@supabase/supabase-js";
import { expect } from "vitest";
import { anon, client, freshEmail, PASSWORD, project, signedUp } from "../../project";
import { type Journeys, present } from "../journey";

/** A client whose storage holds a session that has `seconds` left. */
async function nearlyOver(seconds: number, refreshToken?: string) {
  const { session } = await signedUp();
  const key = "kept";
  const stored = { ...session, expires_at: Math.floor(Date.now() / 1000) + seconds, refresh_token: refreshToken ?? session.refresh_token };
  const kept = new Map([[key, JSON.stringify(stored)]]);
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  };
  const auth = { storage, storageKey: key, autoRefreshToken: false, detectSessionInUrl: false };
  return { session, supabase: client(project.anonKey, auth) };
}

/** The next event of this kind. */
function next(supabase: ReturnType<typeof anon>, wanted: AuthChangeEvent): Promise<void> {
  return new Promise((resolve) => {
    supabase.auth.onAuthStateChange((event) => {
      if (event === wanted) resolve();
    });
  });
}

export const sessions: Journeys = {
  "auth.initialize": {
    async succeeds() {
      const { supabase, session } = await nearlyOver(3000);
      expect(await supabase.auth.initialize()).toEqual({ error: null });
      expect((await supabase.auth.getSession()).data.session?.access_token).toBe(session.access_token);
    },
    async fails() {
      const { supabase } = await nearlyOver(-10, "aaaaaaaaaaaa");
      expect(await supabase.auth.initialize()).toEqual({ error: null });
      expect((await supabase.auth.getSession()).data.session).toBeNull();
    },
  },
  "auth.isThrowOnErrorEnabled": {
    async succeeds() {
      const auth = { throwOnError: true, persistSession: false, autoRefreshToken: false };
      const throwing = client(project.anonKey, auth);
      expect(throwing.auth.isThrowOnErrorEnabled()).toBe(true);
      const refused = throwing.auth.signInWithPassword({ email: freshEmail(), password: "wrong" });
      await expect(refused).rejects.toMatchObject({ code: "invalid_credentials" });
    },
    async fails() {
      expect(anon().auth.isThrowOnErrorEnabled()).toBeFalsy();
    },
  },
  "auth.getSession": {
    async succeeds() {
      const { supabase, session } = await nearlyOver(30);
      const { data, error } = await supabase.auth.getSession();
      expect(error).toBeNull();
      expect(data.session?.refresh_token).not.toBe(session.refresh_token);
    },
    async fails() {
      const { supabase } = await nearlyOver(-10, "aaaaaaaaaaaa");
      const { data } = await supabase.auth.getSession();
      expect(data.session).toBeNull();
    },
  },
  "auth.setSession": {
    async succeeds() {
      const { session, user } = await signedUp();
      const { data, error } = await anon().auth.setSession(session);
      expect(error).toBeNull();
      expect(data.user?.id).toBe(user.id);
    },
    async fails() {
      const { session } = await signedUp();
      const forged = { ...session, access_token: `${session.access_token.slice(0, -6)}AAAAAA` };
      expect((await anon().auth.setSession(forged)).error).toMatchObject({ status: 403, code: "bad_jwt" });
    },
  },
  "auth.refreshSession": {
    async succeeds() {
      const { supabase, session } = await signedUp();
      const { data, error } = await supabase.auth.refreshSession();
      expect(error).toBeNull();
      expect(data.session?.refresh_token).not.toBe(session.refresh_token);
      expect((await supabase.auth.getUser()).error).toBeNull();
    },
    async fails() {
      const { error } = await anon().auth.refreshSession({ refresh_token: "aaaaaaaaaaaa" });
      expect(error).toMatchObject({ status: 400, code: "refresh_token_not_found" });
    },
  },
  "auth.signOut": {
    async succeeds() {
      const { supabase, session } = await signedUp();
      expect((await supabase.auth.signOut()).error).toBeNull();
      expect((await supabase.auth.getSession()).data.session).toBeNull();
      expect((await anon().auth.getUser(session.access_token)).error?.name).toBe("AuthSessionMissingError");
    },
    async fails() {
      const { supabase } = await signedUp();
      await expect(supabase.auth.signOut({ scope: "some" as never })).rejects.toThrow(/scope must be one of/);
      expect((await supabase.auth.getUser()).error).toBeNull();
    },
  },
  "auth.onAuthStateChange": {
    async succeeds() {
      const events: string[] = [];
      const supabase = anon();
      supabase.auth.onAuthStateChange((event) => void events.push(event));
      await supabase.auth.signUp({ email: freshEmail("events"), password: PASSWORD });
      await supabase.auth.updateUser({ data: { a: 1 } });
      await supabase.auth.refreshSession();
      await supabase.auth.signOut();
      expect(events).toEqual(["INITIAL_SESSION", "SIGNED_IN", "USER_UPDATED", "TOKEN_REFRESHED", "SIGNED_OUT"]);
    },
    async fails() {
      const events: string[] = [];
      const supabase = anon();
      await supabase.auth.initialize();
      const { data } = supabase.auth.onAuthStateChange((event) => void events.push(event));
      data.subscription.unsubscribe();
      await supabase.auth.signInWithPassword({ email: freshEmail(), password: "wrong" });
      await signedUp();
      expect(events).not.toContain("SIGNED_IN");
    },
  },
  "auth.startAutoRefresh": {
    async succeeds() {
      const { supabase } = await nearlyOver(80);
      await supabase.auth.initialize();
      const refreshed = next(supabase, "TOKEN_REFRESHED");
      await supabase.auth.startAutoRefresh();
      await refreshed;
      await supabase.auth.stopAutoRefresh();
    },
    async fails() {
      const { supabase } = await nearlyOver(80, "aaaaaaaaaaaa");
      await supabase.auth.startAutoRefresh();
      await supabase.auth.stopAutoRefresh();
      expect((await supabase.auth.refreshSession()).error).toMatchObject({ code: "refresh_token_not_found" });
    },
  },
  "auth.stopAutoRefresh": {
    async succeeds() {
      const { supabase, session } = await signedUp();
      await supabase.auth.startAutoRefresh();
      await supabase.auth.stopAutoRefresh();
      expect((await supabase.auth.getSession()).data.session?.refresh_token).toBe(session.refresh_token);
    },
    async fails() {
      // Nothing runs, and stopping it is no error.
      await expect(anon().auth.stopAutoRefresh()).resolves.toBeUndefined();
    },
  },
  "auth.dispose": {
    async succeeds() {
      const { supabase, session } = await signedUp();
      await supabase.auth.dispose();
      expect((await anon().auth.getUser(session.access_token)).error).toBeNull();
    },
    async fails() {
      const supabase = anon();
      await supabase.auth.dispose();
      await expect(supabase.auth.dispose()).resolves.toBeUndefined();
    },
  },
  "auth.getClaims": {
    async succeeds() {
      const { supabase, user } = await signedUp();
      const { data, error } = await supabase.auth.getClaims();
      expect(error).toBeNull();
      expect(data?.claims).toMatchObject({ sub: user.id, role: "authenticated", aal: "aal1" });
    },
    async fails() {
      const { session } = await signedUp();
      const [head, body] = session.access_token.split(".");
      const { error } = await anon().auth.getClaims(`${present(head, "head")}.${present(body, "body")}.AAAA`);
      expect(error).toMatchObject({ status: 403, code: "bad_jwt" });
    },
  },
};
