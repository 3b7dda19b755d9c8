/** Calls for sign-in, sign-up and passwords. Errors are thrown as supabase-js returns them. */
import { useMutation } from "@tanstack/react-query";
import { getSupabase } from "@/lib/supabase";
import type { RecoveryLink } from "./recovery-link";
import type { Forgot, Login, Signup } from "./schema";
import { currentLocale } from "@/messages/locale";

export type SignupRole = "requester" | "nonprofit";
export type Provider = "google" | "azure";

export function useLogin() {
  return useMutation({
    mutationFn: async ({ email, password }: Login) => {
      const supabase = await getSupabase();
      const { error } = await supabase.auth.signInWithPassword({ email, password });
      if (error) throw error;
    },
  });
}

export interface SignupRequest {
  form: Signup;
  role: SignupRole;
  /** Path that the confirmation mail's link leads to. */
  landing: string;
}

/** Returns whether the sign-up gave a session; without one the address must be confirmed by mail first. */
export function useSignup() {
  return useMutation({
    mutationFn: async ({ form, role, landing }: SignupRequest): Promise<{ signedIn: boolean }> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.auth.signUp({
        email: form.email,
        password: form.password,
        options: {
          data: { full_name: form.fullName, role, language: currentLocale() },
          emailRedirectTo: window.location.origin + landing,
        },
      });
      if (error) throw error;
      return { signedIn: data.session !== null };
    },
  });
}

/** Sends the confirmation mail once more. */
export function useResendConfirmation() {
  return useMutation({
    mutationFn: async ({ email, landing }: { email: string; landing: string }) => {
      const supabase = await getSupabase();
      const { error } = await supabase.auth.resend({
        type: "signup",
        email,
        options: { emailRedirectTo: window.location.origin + landing },
      });
      if (error) throw error;
    },
  });
}

/** Leaves for the provider's page; comes back to `landing` with a session. */
export function useProviderLogin() {
  return useMutation({
    mutationFn: async ({ provider, landing }: { provider: Provider; landing: string }) => {
      const supabase = await getSupabase();
      const { error } = await supabase.auth.signInWithOAuth({
        provider,
        options: { redirectTo: window.location.origin + landing },
      });
      if (error) throw error;
    },
  });
}

/** Makes the signed-in person a nonprofit's owner (after a third-party sign-up, which carries no role). */
export function useBecomeNonprofit() {
  return useMutation({
    mutationFn: async (userId: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase
        .from("user_roles")
        .upsert({ user_id: userId, role: "nonprofit", nonprofit_role: "admin" }, { onConflict: "user_id" });
      if (error) throw error;
    },
  });
}

export function useRequestReset() {
  return useMutation({
    mutationFn: async ({ email, landing }: Forgot & { landing: string }) => {
      const supabase = await getSupabase();
      const { error } = await supabase.auth.resetPasswordForEmail(email, {
        redirectTo: window.location.origin + landing,
      });
      if (error) throw error;
    },
  });
}

/** Turns the mailed link into a session that may set a password. Throws when it is invalid, used or expired. */
export async function openRecoveryLink(link: RecoveryLink): Promise<void> {
  const supabase = await getSupabase();
  switch (link.kind) {
    case "tokens": {
      const { error } = await supabase.auth.setSession({
        access_token: link.accessToken,
        // The spec's link may carry no refresh token; the access token alone is enough for one password.
        refresh_token: link.refreshToken || "none",
      });
      if (error) throw error;
      return;
    }
    case "token_hash": {
      const { error } = await supabase.auth.verifyOtp({ type: "recovery", token_hash: link.tokenHash });
      if (error) throw error;
      return;
    }
    case "code": {
      const { error } = await supabase.auth.exchangeCodeForSession(link.code);
      if (error) throw error;
      return;
    }
    case "invalid":
      throw new Error("no recovery link");
  }
}

/** Sets the new password; the caller then ends the recovery session. */
export function useResetPassword() {
  return useMutation({
    mutationFn: async (password: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase.auth.updateUser({ password });
      if (error) throw error;
    },
  });
}
