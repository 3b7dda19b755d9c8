/** The look-up of a request's status: by number for everyone, in full for its owner. */
import { queryOptions } from "@tanstack/react-query";
import type { RequestStatus } from "@/components/status-badge";
import { z } from "zod";
import { reads } from "@/lib/query-keys";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";

const foundSchema = z.object({
  found: z.literal(true),
  request_number: z.string(),
  status: z.enum(["pending", "in_review", "processing", "approved", "declined", "withdrawn"]),
  /** A nonprofit asked for more information, and the person has to answer. */
  waits_for_you: z.boolean(),
  submitted_at: z.string(),
  review_started_at: z.string().nullable(),
  decided_at: z.string().nullable(),
  /** Dollars. */
  awarded: z.number().nullable(),
  /** From the fixed list; null unless declined. */
  reason: z.string().nullable(),
});
const lookUpSchema = z.discriminatedUnion("found", [foundSchema, z.object({ found: z.literal(false) })]);

export interface FoundStatus extends Omit<z.output<typeof foundSchema>, "found" | "waits_for_you" | "status"> {
  status: RequestStatus;
  needs_more_proof: boolean;
}

/** The public look-up: status, dates and decision, without personal data. Null: no such request. */
export const statusQuery = (number: string) =>
  queryOptions({
    queryKey: ["request-status", number],
    staleTime: 0,
    queryFn: async (): Promise<FoundStatus | null> => {
      const answer = await rpc("request_status", { number }, lookUpSchema);
      return answer.found ? { ...answer, needs_more_proof: answer.waits_for_you } : null;
    },
  });

export interface OwnStatus extends FoundStatus {
  id: string;
}

/** The owner's view of one request, by id or number, with the reason from the fixed list. */
export const ownStatusQuery = (userId: string, id: string) =>
  queryOptions({
    queryKey: [...reads.myRequests, userId, "status", id],
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
