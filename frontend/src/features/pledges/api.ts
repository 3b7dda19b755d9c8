/** Pledges: a promise of money to a nonprofit. No card data passes through here. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import { getSupabase } from "@/lib/supabase";

export interface NonprofitName {
  id: string;
  name: string;
}

/** Active nonprofits by name, to choose whom to give to. */
export const nonprofitNamesQuery = () =>
  queryOptions({
    queryKey: ["pledges", "nonprofits"],
    queryFn: async (): Promise<NonprofitName[]> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.from("nonprofit_directory").select("id, name").order("name");
      if (error) throw error;
      return data as NonprofitName[];
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
