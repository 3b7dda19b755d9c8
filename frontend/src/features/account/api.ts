/** The person's own account: profile, photo, password, role. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { loadAppConfig } from "@/lib/env";
import { replacePicture } from "@/lib/pictures";
import { useSession, type AccountRole } from "@/lib/session";
import { z } from "zod";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import type { MyProfileForm, PasswordForm, ProfileForm } from "./schema";

const profileSchema = z.object({
  id: z.string(),
  email: z.string(),
  full_name: z.string().nullable(),
  first_name: z.string().nullable(),
  middle_name: z.string().nullable(),
  last_name: z.string().nullable(),
  phone: z.string().nullable(),
  sms_consent: z.boolean(),
  /** When a STOP ended that consent; ISO instant. */
  sms_stopped_at: z.string().nullable(),
  bio: z.string().nullable(),
  /** 'yyyy-mm-dd' */
  birthday: z.string().nullable(),
  /** Years, computed by the database from the birthday. */
  age: z.number().nullable(),
  country: z.string().nullable(),
  photo_path: z.string().nullable(),
  id_type: z.string().nullable(),
  id_number: z.string().nullable(),
});
export type Profile = z.output<typeof profileSchema>;

const keys = { profile: (userId: string) => ["account", userId, "profile"] as const };

export const profileQuery = (userId: string) =>
  queryOptions({
    queryKey: keys.profile(userId),
    queryFn: () => rpc("my_profile", {} as never, profileSchema),
  });

/** After a change of the profile: its query, and the name and photo that the shell shows. */
function useProfileChanged(userId: string) {
  const queryClient = useQueryClient();
  const { refresh } = useSession();
  return async () => {
    await Promise.all([queryClient.invalidateQueries({ queryKey: keys.profile(userId) }), refresh()]);
  };
}

/** Saves fields of the profile. The others stay as they are: a STOP may have ended the consent to texts meanwhile. */
export function useSaveProfile(userId: string) {
  const onSuccess = useProfileChanged(userId);
  return useMutation({
    mutationFn: async (input: Partial<ProfileForm>) => {
      const supabase = await getSupabase();
      const { error } = await supabase.rpc("save_profile", { input });
      if (error) throw error;
    },
    onSuccess,
  });
}

/** My Profile: name and phone live in the account's metadata; the database's profile follows them. */
export function useSaveMyProfile(userId: string) {
  const onSuccess = useProfileChanged(userId);
  return useMutation({
    mutationFn: async ({ fullName, phoneNumber }: Partial<MyProfileForm>) => {
      const supabase = await getSupabase();
      // what is undefined is not sent, and stays as it is
      const { error } = await supabase.auth.updateUser({ data: { full_name: fullName, phone: phoneNumber } });
      if (error) throw error;
    },
    onSuccess,
  });
}

/** Replaces the photo. */
export function useChangePhoto(userId: string) {
  const onSuccess = useProfileChanged(userId);
  return useMutation({
    mutationFn: ({ file, before }: { file: File; before: string | null }) =>
      replacePicture({
        bucket: "profile-photos",
        folder: userId,
        file,
        extension: /\.[a-z0-9]{1,5}$/i.exec(file.name)?.[0]?.toLowerCase() ?? ".jpg",
        before,
        pointTo: async (path) => {
          const supabase = await getSupabase();
          const { error } = await supabase.from("profiles").update({ photo_path: path }).eq("id", userId);
          if (error) throw error;
        },
      }),
    onSuccess,
  });
}

/** The given current password is wrong. */
export class WrongCurrentPassword extends Error {
  override name = "WrongCurrentPassword";
}

/** Verifies the current password by a separate sign-in, then sets the new one. */
export function useChangePassword(email: string) {
  return useMutation({
    mutationFn: async ({ currentPassword, newPassword }: PasswordForm) => {
      const [{ createClient }, config] = await Promise.all([import("@supabase/supabase-js"), loadAppConfig()]);
      const proof = createClient(config.apiUrl, config.publishableKey, {
        auth: {
          persistSession: false,
          autoRefreshToken: false,
          detectSessionInUrl: false,
          storageKey: "aidbridge-proof",
        },
      });
      const check = await proof.auth.signInWithPassword({ email, password: currentPassword });
      if (check.error?.code === "invalid_credentials") throw new WrongCurrentPassword();
      if (check.error) throw check.error;
      await proof.auth.signOut({ scope: "local" });
      const supabase = await getSupabase();
      const { error } = await supabase.auth.updateUser({ password: newPassword });
      if (error) throw error;
    },
  });
}

/** Deletes the account; docs/database.md says what the server erases and keeps. */
export const useCloseAccount = () =>
  useMutation({
    mutationFn: (email: string) =>
      rpc("close_account", { email }, z.object({ kept_requests: z.number(), erased_requests: z.number() })),
  });

/** Sets the account role. For nonprofits the role inside the organization is chosen on the next page. */
export function useChooseRole() {
  const { refresh } = useSession();
  return useMutation({
    mutationFn: async ({ userId, role }: { userId: string; role: AccountRole }) => {
      const supabase = await getSupabase();
      const { error } = await supabase
        .from("user_roles")
        .upsert({ user_id: userId, role, nonprofit_role: null }, { onConflict: "user_id" });
      if (error) throw error;
      await refresh();
    },
  });
}
