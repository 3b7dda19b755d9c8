/** Notifications: the list, the unread badge, and their actions. */
import { infiniteQueryOptions, queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
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
  list: (userId: string, which: Which) => [...keys.all, userId, "list", which] as const,
  count: (userId: string, which: Which) => [...keys.all, userId, "count", which] as const,
};

export type Which = "all" | "unread" | "read";

export const NOTIFICATIONS_PAGE = 100;

/** Newest first, paginated. */
export const notificationsQuery = (userId: string, which: Which) =>
  infiniteQueryOptions({
    queryKey: keys.list(userId, which),
    initialPageParam: 0,
    queryFn: async ({ pageParam: from }): Promise<Notification[]> => {
      const supabase = await getSupabase();
      let query = supabase
        .from("notifications")
        .select("id, type, title, message, code, params, link, date, read")
        .eq("user_id", userId);
      if (which !== "all") query = query.eq("read", which === "read");
      const { data, error } = await query
        .order("date", { ascending: false })
        .order("id")
        .range(from, from + NOTIFICATIONS_PAGE - 1);
      if (error) throw error;
      return data as Notification[];
    },
    getNextPageParam: (last, pages) =>
      last.length < NOTIFICATIONS_PAGE ? undefined : pages.length * NOTIFICATIONS_PAGE,
    // one that comes between two readings moves the others: none is shown twice
    select: ({ pages }) => [...new Map(pages.flat().map((item) => [item.id, item])).values()],
    refetchInterval: whileDown,
  });

const countQuery = (userId: string, which: "all" | "unread") =>
  queryOptions({
    queryKey: keys.count(userId, which),
    queryFn: async (): Promise<number> => {
      const supabase = await getSupabase();
      let query = supabase.from("notifications").select("id", { count: "exact", head: true }).eq("user_id", userId);
      if (which === "unread") query = query.eq("read", false);
      const { count, error } = await query;
      if (error) throw error;
      return count ?? 0;
    },
    refetchInterval: whileDown,
  });

/** The badge's number; 0 until known. */
export function useUnreadCount(userId: string): number {
  return useQuery(countQuery(userId, "unread")).data ?? 0;
}

/** How many there are of each, whatever the page has loaded; undefined until known. */
export function useNotificationCounts(userId: string): Record<Which, number> | undefined {
  const { data: all } = useQuery(countQuery(userId, "all"));
  const { data: unread } = useQuery(countQuery(userId, "unread"));
  if (all === undefined || unread === undefined) return undefined;
  // read one after the other: one may be newer
  return { all, unread, read: Math.max(0, all - unread) };
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
