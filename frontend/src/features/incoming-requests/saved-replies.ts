/** Saved replies of an organization, for missing information and denials. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { getSupabase } from "@/lib/supabase";

export type ReplyKind = "info" | "denial";

export interface SavedReply {
  id: string;
  title: string;
  body: string;
}

const repliesKey = (nonprofitId: string, kind: ReplyKind) => ["saved-replies", nonprofitId, kind] as const;

/** By name. At most a hundred: chosen from in the page. */
export const savedRepliesQuery = (nonprofitId: string, kind: ReplyKind) =>
  queryOptions({
    queryKey: repliesKey(nonprofitId, kind),
    queryFn: async (): Promise<SavedReply[]> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("saved_replies")
        .select("id, title, body")
        .eq("nonprofit_id", nonprofitId)
        .eq("kind", kind)
        .order("title");
      if (error) throw error;
      return data;
    },
  });

function useReplyWrite<Input>(nonprofitId: string, kind: ReplyKind, write: (input: Input) => Promise<void>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: write,
    onSettled: () => cache.invalidateQueries({ queryKey: repliesKey(nonprofitId, kind) }),
  });
}

/** An existing name gets the new text. */
export const useSaveReply = (nonprofitId: string, kind: ReplyKind) =>
  useReplyWrite(nonprofitId, kind, async ({ title, body }: Omit<SavedReply, "id">) => {
    const supabase = await getSupabase();
    const { error } = await supabase
      .from("saved_replies")
      .upsert(
        { nonprofit_id: nonprofitId, kind, title: title.trim(), body },
        { onConflict: "nonprofit_id,kind,title" },
      );
    if (error) throw error;
  });

export const useDeleteReply = (nonprofitId: string, kind: ReplyKind) =>
  useReplyWrite(nonprofitId, kind, async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.from("saved_replies").delete().eq("id", id);
    if (error) throw error;
  });

/** The message after inserting a reply, which keeps the typed text. */
export const withReply = (typed: string, body: string): string =>
  typed.trim() === "" ? body : `${typed.trimEnd()}\n\n${body}`;
