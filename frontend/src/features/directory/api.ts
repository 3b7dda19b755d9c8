/** The public side of nonprofits: one organization's profile. */
import { queryOptions } from "@tanstack/react-query";
import { reads } from "@/lib/query-keys";
import { getSupabase } from "@/lib/supabase";

export interface NonprofitProfile {
  id: string;
  name: string;
  mission: string | null;
  description: string | null;
  email: string | null;
  phone: string | null;
  website: string | null;
  location: string | null;
  category: string | null;
  average_response_time_days: number | null;
  /** Towns and states; empty: where it is. */
  service_area: string[];
  /** Public address of the logo. */
  logoUrl: string | null;
  categories: { id: string; name: string; description: string | null }[];
}

export const nonprofitProfileQuery = (id: string) =>
  queryOptions({
    queryKey: [...reads.directory, id],
    queryFn: async (): Promise<NonprofitProfile> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("nonprofit_directory")
        .select(
          "id, name, mission, description, email, phone, website, location, category, average_response_time_days, service_area, logo_path, categories(id, name, description)",
        )
        .eq("id", id)
        .single();
      if (error) throw error;
      const { logo_path, ...row } = data as Omit<NonprofitProfile, "logoUrl"> & { logo_path: string | null };
      return {
        ...row,
        logoUrl: logo_path ? supabase.storage.from("logos").getPublicUrl(logo_path).data.publicUrl : null,
      };
    },
  });
