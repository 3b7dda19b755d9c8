/** Pledges: a promise of money to a nonprofit. No card data passes through here. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import { searchPatterns } from "@/lib/search";
import { getSupabase } from "@/lib/supabase";

export interface NonprofitName {
  id: string;
  name: string;
}

/** So many names make a list to choose from; more are searched. */
export const MOST_NAMES = 50;

export interface NonprofitNames {
  names: NonprofitName[];
  /** There are others, which a search finds. */
  more: boolean;
}

/** Active nonprofits by name, for the choice of whom to give to. */
export const nonprofitNamesQuery = (search: string) =>
  queryOptions({
    queryKey: ["pledges", "nonprofits", search],
    placeholderData: keepPreviousData,
    queryFn: async (): Promise<NonprofitNames> => {
      const supabase = await getSupabase();
      let query = supabase.from("nonprofit_directory").select("id, name");
      for (const pattern of searchPatterns(search)) query = query.ilike("name", pattern);
      const { data, error } = await query
        .order("name")
        .order("id")
        .limit(MOST_NAMES + 1);
      if (error) throw error;
      return { names: data.slice(0, MOST_NAMES) as NonprofitName[], more: data.length > MOST_NAMES };
    },
  });

// a type, not an interface: only then does it count as JSON
export type Pledge = {
  nonprofit_id: string;
  /** Dollars. */
  amount: number;
  email: string;
  name: string;
  /** Made once per form: a repeated send gives the same pledge. */
  key: string;
};

export function usePledge() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async (input: Pledge): Promise<{ nonprofit: string; amount: number }> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("pledge_donation", { input });
      if (error) throw error;
      return data as { nonprofit: string; amount: number };
    },
    onSuccess: () => cache.invalidateQueries({ queryKey: reads.donorDashboard }),
  });
}
