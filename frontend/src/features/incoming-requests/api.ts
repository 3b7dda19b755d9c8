/**
 * Requests sent to one organization: the list (paginated, searched and sorted on the server), one request, the three
 * decisions.
 */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { z } from "zod";
import { whileDown } from "@/lib/live";
import { reads } from "@/lib/query-keys";
import { nothing, rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import { PAGE_SIZE, type IncomingFilters } from "./filters";
import {
  approvalSchema,
  countsSchema,
  incomingRowSchema,
  lookedAfterSchema,
  openedRequestSchema,
  type IncomingRow,
} from "./types";

export const incomingKeys = {
  all: (nonprofitId: string) => [...reads.incomingRequests, nonprofitId] as const,
  list: (nonprofitId: string, filters: IncomingFilters) => [...incomingKeys.all(nonprofitId), "list", filters] as const,
  counts: (nonprofitId: string) => [...incomingKeys.all(nonprofitId), "counts"] as const,
  detail: (nonprofitId: string, requestId: string) => [...incomingKeys.all(nonprofitId), "detail", requestId] as const,
};

/** One page of the list, with the counts of every tab. */
const pageSchema = z.object({
  rows: z.array(incomingRowSchema),
  /** A search counts to 1,000; `more` says that there are others. */
  total: z.number(),
  more: z.boolean(),
  counts: countsSchema,
});
export type IncomingPage = z.output<typeof pageSchema>;

const selectPage = (nonprofitId: string, filters: IncomingFilters, page: number, size: number) =>
  rpc(
    "incoming_page",
    {
      nonprofit_id: nonprofitId,
      status: filters.status === "all" ? undefined : filters.status,
      search: filters.search || undefined,
      sort: filters.sort?.key,
      descending: filters.sort?.direction === "desc",
      mine: filters.mine,
      page,
      page_size: size,
    },
    pageSchema,
  );

export const incomingListQuery = (nonprofitId: string, filters: IncomingFilters) =>
  queryOptions({
    queryKey: incomingKeys.list(nonprofitId, filters),
    queryFn: () => selectPage(nonprofitId, filters, filters.page, PAGE_SIZE),
    refetchInterval: whileDown,
    placeholderData: keepPreviousData,
  });

/** The number of requests per status, and how many need a decision of this organization (see `isDue`). */
export const incomingCountsQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: incomingKeys.counts(nonprofitId),
    queryFn: () => rpc("incoming_request_counts", { nonprofit_id: nonprofitId }, countsSchema),
    refetchInterval: whileDown,
  });

/** Rows per round trip of an export, the server's maximum. */
const EXPORT_CHUNK = 1000;

/** All filtered rows, in order. */
export async function exportRows(nonprofitId: string, filters: IncomingFilters): Promise<IncomingRow[]> {
  const rows: IncomingRow[] = [];
  for (let page = 1; ; page++) {
    const chunk = await selectPage(nonprofitId, filters, page, EXPORT_CHUNK);
    rows.push(...chunk.rows);
    if (chunk.rows.length < EXPORT_CHUNK) return rows;
  }
}

/** A request as the organization's staff may read it. Reading does not mark it as opened: `useMarkOpened` does. */
export const openedRequestQuery = (nonprofitId: string, requestId: string) =>
  queryOptions({
    queryKey: incomingKeys.detail(nonprofitId, requestId),
    queryFn: () => rpc("staff_request", { request_id: requestId, nonprofit_id: nonprofitId }, openedRequestSchema),
    staleTime: 0,
    refetchInterval: whileDown,
  });

/** Marks a request as opened, which the person sees; only the first reader counts. */
export function useMarkOpened(nonprofitId: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (requestId: string) =>
      rpc("mark_request_opened", { request_id: requestId, nonprofit_id: nonprofitId }, z.boolean()),
    onSuccess: (first) => (first ? cache.invalidateQueries({ queryKey: incomingKeys.all(nonprofitId) }) : undefined),
  });
}

interface Target {
  nonprofitId: string;
  requestId: string;
}

/**
 * A decision changes the list, the counts, the figures and the budget, so all of the organization's reads are
 * invalidated.
 */
function useDecision<Input, Answer>(call: (input: Input) => Promise<Answer>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: call,
    onSettled: () =>
      Promise.all(
        [reads.incomingRequests, reads.nonprofitDashboard, reads.budget, reads.notifications].map((queryKey) =>
          cache.invalidateQueries({ queryKey }),
        ),
      ),
  });
}

export const useApprove = ({ nonprofitId, requestId }: Target) =>
  useDecision(({ amount, acceptOverBudget }: { amount: number; acceptOverBudget: boolean }) =>
    rpc(
      "approve_request",
      { request_id: requestId, nonprofit_id: nonprofitId, amount, accept_over_budget: acceptOverBudget },
      approvalSchema,
    ),
  );

export const useDeny = ({ nonprofitId, requestId }: Target) =>
  useDecision(({ reason, reasonCode }: { reason: string; reasonCode: string }) =>
    rpc("deny_request", { request_id: requestId, nonprofit_id: nonprofitId, reason, reason_code: reasonCode }, nothing),
  );

export const useAskInfo = ({ nonprofitId, requestId }: Target) =>
  useDecision(({ notes, items }: { notes: string; items: string[] }) =>
    rpc("request_more_info", { request_id: requestId, nonprofit_id: nonprofitId, notes, items }, nothing),
  );

/** Assigns a request to a member of the team; null: to nobody in particular. */
export const useAssign = ({ nonprofitId, requestId }: Target) =>
  useDecision((memberId: string | null) =>
    rpc(
      "assign_request",
      { request_id: requestId, nonprofit_id: nonprofitId, member_id: memberId ?? undefined },
      lookedAfterSchema,
    ),
  );

export interface DenialReason {
  code: string;
  label: string;
}

/** The fixed list that the public look-up may show. */
export const denialReasonsQuery = queryOptions({
  queryKey: ["denial-reasons"],
  queryFn: async (): Promise<DenialReason[]> => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.from("denial_reasons").select("code, label").order("position");
    if (error) throw error;
    return (data ?? []) as DenialReason[];
  },
  staleTime: Infinity,
});
