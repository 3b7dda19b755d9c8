/** A donor's own figures, gifts and messages: totals only, never a person. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { getSupabase } from "@/lib/supabase";

export interface Gift {
  id: string;
  nonprofit_id: string;
  nonprofit_name: string;
  /** Dollars. */
  amount: number;
  status: "pledged" | "received" | "cancelled";
  pledged_at: string;
  received_at: string | null;
}

export interface DonorMessage {
  id: string;
  nonprofit_id: string;
  nonprofit_name: string;
  subject: string;
  message: string;
  date: string;
  unread: boolean;
  /** What this donor answered. */
  replies: { message: string; date: string }[];
}

export interface DonorDashboard {
  total_donated: number;
  /** Different people whose requests were approved since the first gift. */
  people_impacted: number;
  nonprofits_supported: number;
  donations: Gift[];
  paid_for: { category: string; amount: number }[];
  messages: DonorMessage[];
  unread_messages: number;
}

const key = (userId: string) => ["donor-dashboard", userId] as const;

export const donorDashboardQuery = (userId: string) =>
  queryOptions({
    queryKey: key(userId),
    queryFn: async (): Promise<DonorDashboard> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("donor_dashboard");
      if (error) throw error;
      return data as unknown as DonorDashboard;
    },
  });

export function useMarkMessageRead(userId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase.rpc("mark_donor_message_read", { message_id: id });
      if (error) throw error;
    },
    onSettled: () => cache.invalidateQueries({ queryKey: key(userId) }),
  });
}

export function useReply(userId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ messageId, message, key }: { messageId: string; message: string; key: string }) => {
      const supabase = await getSupabase();
      const { error } = await supabase.rpc("reply_to_donor_message", { message_id: messageId, message, key });
      if (error) throw error;
    },
    onSuccess: () => cache.invalidateQueries({ queryKey: key(userId) }),
  });
}
