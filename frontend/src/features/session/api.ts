/** Who the person is, in one call: role, profile, memberships (`me()` in docs/database.md). */
import type { AccountRole, AppUser, NonprofitRole, Organization, SelectedNonprofit } from "@/lib/session";
import { getSupabase } from "@/lib/supabase";

/** What the auth service knows of the person. */
export interface AuthUser {
  id: string;
  email?: string;
  phone?: string;
  /** ISO instant. */
  last_sign_in_at?: string;
  user_metadata?: Record<string, unknown>;
}

export interface Person {
  /** Without the photo: its address is asked for apart, so that no page waits for it. */
  user: AppUser;
  /** Object name in the bucket `profile-photos`. */
  photoPath: string | null;
  organization: Organization | null;
  selectedNonprofit: SelectedNonprofit | null;
}

interface Membership {
  nonprofit_id: string;
  name: string;
  role: NonprofitRole;
  logo_path: string | null;
  status: "active" | "awaiting_approval" | "closed";
}

interface Me {
  email: string;
  email_proved: boolean;
  role: AccountRole | null;
  nonprofit_role: NonprofitRole | null;
  profile: { full_name: string | null; phone: string | null; photo_path: string | null } | null;
  selected_nonprofit: SelectedNonprofit | null;
  organization: Membership | null;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Everything the app needs to know about who signed in. Throws what supabase-js answers. */
export async function loadPerson(auth: AuthUser): Promise<Person> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc("me");
  if (error) throw error;
  const me = data as Me | null;
  return {
    photoPath: me?.profile?.photo_path ?? null,
    user: {
      id: auth.id,
      email: auth.email ?? me?.email ?? "",
      role: me?.role ?? null,
      nonprofitRole: me?.nonprofit_role ?? null,
      fullName: me?.profile?.full_name || text(auth.user_metadata?.full_name),
      phoneNumber: me?.profile?.phone || auth.phone || text(auth.user_metadata?.phone),
      photoUrl: null,
      emailProved: me?.email_proved ?? false,
    },
    organization:
      me?.role === "nonprofit" && me.organization
        ? {
            id: me.organization.nonprofit_id,
            name: me.organization.name,
            role: me.organization.role,
            logoPath: me.organization.logo_path,
          }
        : null,
    selectedNonprofit: me?.selected_nonprofit ?? null,
  };
}

/** A profile photo's address, signed for an hour; null when it cannot be read. */
export async function photoUrl(path: string): Promise<string | null> {
  const supabase = await getSupabase();
  const { data } = await supabase.storage.from("profile-photos").createSignedUrl(path, 3600);
  return data?.signedUrl ?? null;
}

/** Keeps the requester's nonprofit on their profile. */
export async function saveSelectedNonprofit(nonprofitId: string): Promise<void> {
  const supabase = await getSupabase();
  const { error } = await supabase.rpc("select_nonprofit", { nonprofit_id: nonprofitId });
  if (error) throw error;
}

/** Takes over what was sent signed out from this account's proved address. Answers how many requests. */
export async function claimGuestRequests(): Promise<number> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc("claim_guest_requests");
  if (error) throw error;
  return (data as { claimed_requests?: number } | null)?.claimed_requests ?? 0;
}
