/** What is asked of the server about the person who is here, and done for them (`me()` in docs/database.md). */
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

/** Keeps the requester's nonprofit on their profile. */
export async function saveSelectedNonprofit(nonprofitId: string): Promise<void> {
  const supabase = await getSupabase();
  const { error } = await supabase.rpc("select_nonprofit", { nonprofit_id: nonprofitId });
  if (error) throw error;
}

/** Takes over what was sent signed out from this account's proved address. Answers how many requests. */
export async function claimGuestRequests(): Promise<number> {
  // the shapes of answers come when one is wanted: the landing page pays for no parser
  const { claimRequests } = await import("./answers");
  return claimRequests();
}
