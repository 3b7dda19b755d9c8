/** Proving an address by a mailed code with six digits (`send_address_code`, `check_address_code` in docs/database.md). */
import { getSupabase } from "./supabase";

export interface AccountMatch {
  id: string;
  fullName: string;
  email: string;
  matchType: string;
}

export type CodeCheck =
  | {
      ok: true;
      proof: string;
      matches: AccountMatch[];
      /** Signed in with the proved address: the number of claimed requests. */
      claimed_requests?: number;
      /** The same: the number of this admin's invitations that waited for the proof and are now sent. */
      sent_invitations?: number;
    }
  | { ok: false; reason: "wrong_code" | "expired"; tries_left: number };

/** Mails a six-digit code; answers the same whether or not an account exists. */
export async function sendAddressCode(email: string): Promise<void> {
  const supabase = await getSupabase();
  const { error } = await supabase.rpc("send_address_code", { email });
  if (error) throw error;
}

export async function checkAddressCode(email: string, code: string): Promise<CodeCheck> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc("check_address_code", { email, code });
  if (error) throw error;
  return data as CodeCheck;
}
