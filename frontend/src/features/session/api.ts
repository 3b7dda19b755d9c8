/** Calls about the current person (`me()` in docs/database.md). */
import { getSupabase } from "@/lib/supabase";

/** The auth service's data about the person. */
export interface AuthUser {
  id: string;
  email?: string;
  phone?: string;
  /** ISO instant. */
  last_sign_in_at?: string;
  user_metadata?: Record<string, unknown>;
}

/** Stores the requester's nonprofit in their profile. */
export async function saveSelectedNonprofit(nonprofitId: string): Promise<void> {
  const supabase = await getSupabase();
  const { error } = await supabase.rpc("select_nonprofit", { nonprofit_id: nonprofitId });
  if (error) throw error;
}

/** Claims requests sent while signed out from this account's proved address. Returns their number. */
export async function claimGuestRequests(): Promise<number> {
  // schemas are loaded on demand, so that the landing page needs no parser
  const { claimRequests } = await import("./answers");
  return claimRequests();
}
