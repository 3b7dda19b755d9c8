/** Messages to donors, and their answers. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { z } from "zod";
import { whileDown } from "@/lib/live";
import { reads } from "@/lib/query-keys";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import type { DonorMessageForm } from "./schema";

export interface InboxItem {
  id: string;
  from: string;
  subject: string;
  /** The first 140 characters. */
  preview: string;
  message: string;
  date: string;
  unread: boolean;
}

export interface SentItem {
  id: string;
  subject: string;
  message: string;
  recipient_count: number;
  /** How many of them it was mailed to by now. */
  mailed_count: number;
  created_at: string;
}

export interface MessagePage<T> {
  rows: T[];
  total: number;
}

export const MESSAGES_PAGE_SIZE = 20;

const keys = {
  all: (nonprofitId: string) => [...reads.donorMessages, nonprofitId] as const,
  donors: (nonprofitId: string) => [...keys.all(nonprofitId), "donors"] as const,
  unread: (nonprofitId: string) => [...keys.all(nonprofitId), "unread"] as const,
  inbox: (nonprofitId: string, page: number) => [...keys.all(nonprofitId), "inbox", page] as const,
  sent: (nonprofitId: string, page: number) => [...keys.all(nonprofitId), "sent", page] as const,
};

const range = (page: number): [number, number] => [(page - 1) * MESSAGES_PAGE_SIZE, page * MESSAGES_PAGE_SIZE - 1];

/** How many people a message sent now would reach. */
export const activeDonorsQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: keys.donors(nonprofitId),
    queryFn: async (): Promise<number> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("active_donor_count", { nonprofit_id: nonprofitId });
      if (error) throw error;
      return data as number;
    },
  });

export const unreadAnswersQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: keys.unread(nonprofitId),
    queryFn: async (): Promise<number> => {
      const supabase = await getSupabase();
      const { count, error } = await supabase
        .from("donor_inbox")
        .select("id", { count: "exact", head: true })
        .eq("nonprofit_id", nonprofitId)
        .eq("unread", true);
      if (error) throw error;
      return count ?? 0;
    },
    refetchInterval: whileDown,
  });

export const inboxQuery = (nonprofitId: string, page: number) =>
  queryOptions({
    queryKey: keys.inbox(nonprofitId, page),
    queryFn: async (): Promise<MessagePage<InboxItem>> => {
      const supabase = await getSupabase();
      const { data, error, count } = await supabase
        .from("donor_inbox")
        .select("id, from, subject, preview, message, date, unread", { count: "exact" })
        .eq("nonprofit_id", nonprofitId)
        .order("date", { ascending: false })
        .order("id")
        .range(...range(page));
      if (error) throw error;
      return { rows: data as InboxItem[], total: count ?? 0 };
    },
    placeholderData: keepPreviousData,
    refetchInterval: whileDown,
  });

export const sentQuery = (nonprofitId: string, page: number) =>
  queryOptions({
    queryKey: keys.sent(nonprofitId, page),
    queryFn: async (): Promise<MessagePage<SentItem>> => {
      const supabase = await getSupabase();
      const { data, error, count } = await supabase
        .from("donor_messages")
        .select("id, subject, message, recipient_count, mailed_count, created_at", { count: "exact" })
        .eq("nonprofit_id", nonprofitId)
        .order("created_at", { ascending: false })
        .order("id")
        .range(...range(page));
      if (error) throw error;
      return { rows: data as SentItem[], total: count ?? 0 };
    },
    placeholderData: keepPreviousData,
    refetchInterval: whileDown,
  });

const sendingSchema = z.object({ id: z.string(), recipients: z.number(), mailed: z.number() });
/** The delivery state of a message, which is mailed in batches. */
export type Sending = z.output<typeof sendingSchema>;

/** `key`: the same for each try of one message, so that a repeated send reaches nobody twice. */
export function useSendDonorMessage(nonprofitId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ form, key }: { form: DonorMessageForm; key: string }) =>
      rpc("send_donor_message", { nonprofit_id: nonprofitId, ...form, key }, sendingSchema),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.all(nonprofitId) }),
  });
}

/** Mails the next batch of a message that has not reached everybody. */
export function useContinueMessage(nonprofitId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (messageId: string) => rpc("continue_donor_message", { message_id: messageId }, sendingSchema),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.all(nonprofitId) }),
  });
}

export function useMarkAnswerRead(nonprofitId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase
        .from("donor_message_replies")
        .update({ read_at: new Date().toISOString() })
        .eq("id", id)
        .select("id")
        .single();
      if (error) throw error;
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.all(nonprofitId) }),
  });
}
