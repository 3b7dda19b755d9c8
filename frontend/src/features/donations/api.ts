/** A donor's own figures, gifts and messages; never data about requesters. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { z } from "zod";
import { reads } from "@/lib/query-keys";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";

const donorMessageSchema = z.object({
  id: z.string(),
  nonprofit_id: z.string(),
  nonprofit_name: z.string(),
  subject: z.string(),
  message: z.string(),
  date: z.string(),
  unread: z.boolean(),
  /** What this donor answered. */
  replies: z.array(z.object({ message: z.string(), date: z.string() })),
});
export type DonorMessage = z.output<typeof donorMessageSchema>;

const giftSchema = z.object({
  id: z.string(),
  nonprofit_id: z.string(),
  nonprofit_name: z.string(),
  /** Dollars. */
  amount: z.number(),
  status: z.enum(["pledged", "received", "cancelled"]),
  pledged_at: z.string(),
  received_at: z.string().nullable(),
});
export type Gift = z.output<typeof giftSchema>;

const donorDashboardSchema = z.object({
  total_donated: z.number(),
  /** Different people whose requests were approved since the first gift. */
  people_impacted: z.number(),
  nonprofits_supported: z.number(),
  donations: z.array(giftSchema),
  paid_for: z.array(z.object({ category: z.string(), amount: z.number() })),
  messages: z.array(donorMessageSchema),
  unread_messages: z.number(),
});
export type DonorDashboard = z.output<typeof donorDashboardSchema>;

const key = (userId: string) => [...reads.donorDashboard, userId] as const;

export const donorDashboardQuery = (userId: string) =>
  queryOptions({
    queryKey: key(userId),
    queryFn: () => rpc("donor_dashboard", {} as never, donorDashboardSchema),
    // polls, so that a decision shows within seconds; donors may not subscribe to the rows
    refetchInterval: 10_000,
  });

/** One message that the donor received, however old; null when there is none. */
export const donorMessageQuery = (userId: string, id: string) =>
  queryOptions({
    queryKey: [...key(userId), "message", id],
    queryFn: async (): Promise<DonorMessage | null> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("my_donor_messages")
        .select("id, nonprofit_id, nonprofit_name, subject, message, date, unread, replies")
        .eq("id", id)
        .maybeSingle();
      if (error) throw error;
      return data === null ? null : donorMessageSchema.parse(data);
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
