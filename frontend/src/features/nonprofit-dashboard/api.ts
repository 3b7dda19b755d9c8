/** Everything the nonprofit's front page shows, in one round trip. */
import { queryOptions } from "@tanstack/react-query";
import type { NonprofitRole } from "@/lib/session";
import { getSupabase } from "@/lib/supabase";

export interface DashboardRequest {
  request_id: string;
  nonprofit_id: string;
  request_number: string;
  category: string;
  amount: string;
  amount_requested: number | null;
  amount_approved: number | null;
  status: "pending" | "processing" | "approved" | "declined" | "withdrawn" | "taken";
  part: "open" | "claimed" | "taken" | "denied" | "withdrawn" | "closed";
  needs_more_proof: boolean;
  opened: boolean;
  submitted_at: string;
  waiting_days: number | null;
  requester_name: string | null;
}

export interface DashboardCategory {
  id: string;
  name: string;
  description: string | null;
  /** Requests of this category that were sent to the organization. */
  requests: number;
  is_active: boolean;
  /** False: a global category that requests name, not one of the organization's own list. */
  own: boolean;
}

export interface DashboardMember {
  id: string;
  full_name: string;
  email: string;
  role: NonprofitRole;
  is_active: boolean;
  /** 'pending' until the invitation is accepted. */
  user_id: string;
}

/** Dollars; `percent` of the allocation that was paid out, 0 to 100 and beyond. The sums are for managers alone. */
export interface DashboardBudget {
  percent: number;
  total?: number;
  used?: number;
  remaining?: number;
  by_category?: { category: string; amount: number }[];
}

export interface NonprofitDashboard {
  organization: { id: string; name: string; status: "active" | "awaiting_approval" | "closed" };
  role: NonprofitRole;
  /** Null for volunteers, who see no requests. */
  counts: { all: number; pending: number; processing: number; approved: number; declined: number } | null;
  budget: DashboardBudget;
  longest_waiting: (DashboardRequest & { also_sent_to: string[] }) | null;
  recent: DashboardRequest[];
  requests: DashboardRequest[];
  categories: DashboardCategory[];
  /** Null for those who may not see the team. */
  team: DashboardMember[] | null;
}

export const nonprofitDashboardQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: ["nonprofit-dashboard", nonprofitId],
    queryFn: async (): Promise<NonprofitDashboard> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("nonprofit_dashboard", { nonprofit_id: nonprofitId });
      if (error) throw error;
      return data as unknown as NonprofitDashboard;
    },
  });
