/** The newsletter: asking for it, confirming by mail, ending it. */
import { useMutation } from "@tanstack/react-query";
import { getSupabase } from "@/lib/supabase";

export function useSubscribe() {
  return useMutation({
    mutationFn: async (email: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase.rpc("subscribe_newsletter", { email });
      if (error) throw error;
    },
  });
}

export function useConfirmNewsletter() {
  return useMutation({
    mutationFn: async (token: string): Promise<boolean> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("confirm_newsletter", { token });
      if (error) throw error;
      return (data as { confirmed: boolean }).confirmed;
    },
  });
}

export interface Unsubscribed {
  unsubscribed: boolean;
  list?: "newsletter" | "donors";
  organization?: string | null;
}

export function useUnsubscribe() {
  return useMutation({
    mutationFn: async (token: string): Promise<Unsubscribed> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("unsubscribe", { token });
      if (error) throw error;
      return data as unknown as Unsubscribed;
    },
  });
}
