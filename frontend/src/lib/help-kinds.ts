/** The kinds of help that people choose from, by the `get-categories` function. */
import { queryOptions } from "@tanstack/react-query";
import { reads } from "./query-keys";
import { getSupabase } from "./supabase";

export interface HelpKind {
  id: string;
  name: string;
  description: string | null;
}

export const helpKindsQuery = queryOptions({
  queryKey: [...reads.requestForm, "categories"],
  staleTime: 5 * 60_000,
  queryFn: async (): Promise<HelpKind[]> => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.functions.invoke<{ categories: HelpKind[] }>("get-categories");
    if (error) throw error;
    return data?.categories ?? [];
  },
});
