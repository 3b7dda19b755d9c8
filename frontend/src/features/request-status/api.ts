/** The look-up of a request's status: by number for everyone, in full for its owner. */
import { queryOptions } from "@tanstack/react-query";
import type { RequestStatus } from "@/components/status-badge";
import { getSupabase } from "@/lib/supabase";

export interface FoundStatus {
  request_number: string;
  status: RequestStatus;
  needs_more_proof: boolean;
  submitted_at: string;
  review_started_at: string | null;
  decided_at: string | null;
  /** Dollars. */
  awarded: number | null;
  /** From the fixed list; null unless declined. */
  reason: string | null;
}

/** 'req-2 ' → 'REQ-2': what people type by heart. */
export const normalizeNumber = (typed: string): string => typed.trim().toUpperCase().replace(/\s+/g, "");

/** The public look-up: status, dates and decision, nothing that names a person. Null: no such request. */
export const statusQuery = (number: string) =>
  queryOptions({
    queryKey: ["request-status", number],
    staleTime: 0,
    queryFn: async (): Promise<FoundStatus | null> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("request_status", { number });
      if (error) throw error;
      const answer = data as ({ found: true } & Omit<FoundStatus, "needs_more_proof">) | { found: false };
      return answer.found ? { ...answer, needs_more_proof: false } : null;
    },
  });

export interface OwnStatus extends FoundStatus {
  id: string;
}

/** The owner's look at one request, by id or number; the reason from the fixed list stands beside it. */
export const ownStatusQuery = (userId: string, id: string) =>
  queryOptions({
    queryKey: ["my-requests", userId, "status", id],
    queryFn: async (): Promise<OwnStatus> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("request_detail", { id });
      if (error) throw error;
      const { request } = data as {
        request: Omit<OwnStatus, "awarded" | "reason"> & {
          amount_approved: number | null;
          denial_reason: string | null;
        };
      };
      const { amount_approved, denial_reason, ...rest } = request;
      return { ...rest, awarded: amount_approved, reason: denial_reason };
    },
  });
