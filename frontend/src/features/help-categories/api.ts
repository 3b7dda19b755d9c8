/** The kinds of help that one organization lists. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import { getSupabase } from "@/lib/supabase";
import type { CategoryForm } from "./schema";

export interface HelpCategory {
  id: string;
  name: string;
  description: string | null;
}

const keyOf = (nonprofitId: string) => ["help-categories", nonprofitId] as const;

export const helpCategoriesQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: keyOf(nonprofitId),
    queryFn: async (): Promise<HelpCategory[]> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("categories")
        .select("id, name, description")
        .eq("nonprofit_id", nonprofitId)
        .order("name");
      if (error) throw error;
      return data as HelpCategory[];
    },
  });

function useCategoryWrite<Input>(nonprofitId: string, write: (input: Input) => Promise<void>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: write,
    onSettled: () =>
      Promise.all([
        cache.invalidateQueries({ queryKey: keyOf(nonprofitId) }),
        cache.invalidateQueries({ queryKey: [...reads.nonprofitDashboard, nonprofitId] }),
        cache.invalidateQueries({ queryKey: reads.directory }),
      ]),
  });
}

export const useAddCategory = (nonprofitId: string) =>
  useCategoryWrite(nonprofitId, async ({ name, description }: CategoryForm) => {
    const supabase = await getSupabase();
    const { error } = await supabase
      .from("categories")
      .insert({ name, description: description === "" ? null : description, nonprofit_id: nonprofitId })
      .select("id")
      .single();
    if (error) throw error;
  });

export const useDeleteCategory = (nonprofitId: string) =>
  useCategoryWrite(nonprofitId, async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.from("categories").delete().eq("id", id);
    if (error) throw error;
  });
