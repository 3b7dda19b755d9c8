/** The newsletter: subscribing, confirming by mail, unsubscribing. */
import { useMutation } from "@tanstack/react-query";
import { z } from "zod";
import { rpc } from "@/lib/rpc";
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

const unsubscribedSchema = z.object({
  unsubscribed: z.boolean(),
  list: z.enum(["newsletter", "donors"]).optional(),
  organization: z.string().nullable().optional(),
});
export type Unsubscribed = z.output<typeof unsubscribedSchema>;

export function useUnsubscribe() {
  return useMutation({
    mutationFn: (token: string) => rpc("unsubscribe", { token }, unsubscribedSchema),
  });
}
