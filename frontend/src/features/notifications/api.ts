/** Notifications: the list, the unread badge, and their actions. */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { whileDown } from "@/lib/live";
import { reads } from "@/lib/query-keys";
import { getSupabase } from "@/lib/supabase";

export type NotificationType = "info" | "warning" | "update" | "success";

export interface Notification {
  id: string;
  type: NotificationType;
  /** In English. Without a code, `title` and `message` are a person's own words. */
  title: string;
  message: string;
  /** The event and its parameters; `notificationWords` renders them in the reader's language. */
  code: string | null;
  params: unknown;
  /** A path of this app, or null. */
  link: string | null;
  date: string;
  read: boolean;
}

const keys = {
  all: reads.notifications,
  list: (userId: string) => [...keys.all, userId, "list"] as const,
  unread: (userId: string) => [...keys.all, userId, "unread"] as const,
};

/** The newest 200, newest first. */
export const notificationsQuery = (userId: string) =>
  queryOptions({
    queryKey: keys.list(userId),
    queryFn: async (): Promise<Notification[]> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("notifications")
        .select("id, type, title, message, code, params, link, date, read")
        .eq("user_id", userId)
        .order("date", { ascending: false })
        .limit(200);
      if (error) throw error;
      return data as Notification[];
    },
    refetchInterval: whileDown,
  });

const unreadQuery = (userId: string) =>
  queryOptions({
    queryKey: keys.unread(userId),
    queryFn: async (): Promise<number> => {
      const supabase = await getSupabase();
      const { count, error } = await supabase
        .from("notifications")
        .select("id", { count: "exact", head: true })
        .eq("user_id", userId)
        .eq("read", false);
      if (error) throw error;
      return count ?? 0;
    },
    refetchInterval: whileDown,
  });

/** The badge's number; 0 until known. */
export function useUnreadCount(userId: string): number {
  return useQuery(unreadQuery(userId)).data ?? 0;
}

function useNotificationMutation<V>(write: (variables: V) => Promise<void>) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: write,
    onSettled: () => queryClient.invalidateQueries({ queryKey: keys.all }),
  });
}

export function useMarkRead() {
  return useNotificationMutation(async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.from("notifications").update({ read: true }).eq("id", id);
    if (error) throw error;
  });
}

export function useMarkAllRead() {
  return useNotificationMutation<void>(async () => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("mark_all_notifications_read");
    if (error) throw error;
  });
}

export function useDeleteNotification() {
  return useNotificationMutation(async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.from("notifications").delete().eq("id", id);
    if (error) throw error;
  });
}
