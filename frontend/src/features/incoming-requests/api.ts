/** Requests sent to one organization: the list (cut, searched and sorted on the server), one request, the three decisions. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { getSupabase } from "@/lib/supabase";
import { PAGE_SIZE, type IncomingFilters, type SortKey } from "./filters";
import type {
  Counts,
  IncomingRow,
  OtherNonprofit,
  PartState,
  RequestDocument,
  RequestRow,
  TimelineEvent,
} from "./types";

export const incomingKeys = {
  all: (nonprofitId: string) => ["incoming-requests", nonprofitId] as const,
  list: (nonprofitId: string, filters: IncomingFilters) => [...incomingKeys.all(nonprofitId), "list", filters] as const,
  counts: (nonprofitId: string) => [...incomingKeys.all(nonprofitId), "counts"] as const,
  detail: (nonprofitId: string, requestId: string) => [...incomingKeys.all(nonprofitId), "detail", requestId] as const,
};

const COLUMNS =
  "request_id, nonprofit_id, request_number, category, amount, amount_requested, amount_approved, status, part, needs_more_proof, opened, submitted_at, updated_at, waiting_days, requester_name";

/** Numbers are given in the order of sending, so both sort by the instant. */
const sortColumns: Record<SortKey, string> = {
  number: "submitted_at",
  date: "submitted_at",
  category: "category",
  amount: "amount_requested",
};

/** What a person typed, as a pattern that means these characters and nothing else. */
const containing = (search: string) => `%${search.replace(/[\\%_]/g, "\\$&")}%`;

async function selectRows(nonprofitId: string, filters: IncomingFilters, from: number, to: number) {
  const supabase = await getSupabase();
  let query = supabase.from("incoming_requests").select(COLUMNS, { count: "exact" }).eq("nonprofit_id", nonprofitId);
  if (filters.status !== "all") query = query.eq("status", filters.status);
  if (filters.search) query = query.ilike("search_text", containing(filters.search));
  query = filters.sort
    ? query.order(sortColumns[filters.sort.key], { ascending: filters.sort.direction === "asc", nullsFirst: false })
    : query.order("waiting_days", { ascending: false, nullsFirst: false }).order("submitted_at", { ascending: false });
  // the second key keeps pages apart when the first is equal
  const { data, error, count } = await query.order("request_id").range(from, to);
  // asking behind the last page is an empty page, not a fault
  if (error?.code === "PGRST103") return { rows: [], total: 0 };
  if (error) throw error;
  return { rows: (data ?? []) as IncomingRow[], total: count ?? 0 };
}

export const incomingListQuery = (nonprofitId: string, filters: IncomingFilters) =>
  queryOptions({
    queryKey: incomingKeys.list(nonprofitId, filters),
    queryFn: () => selectRows(nonprofitId, filters, (filters.page - 1) * PAGE_SIZE, filters.page * PAGE_SIZE - 1),
    placeholderData: keepPreviousData,
  });

export const incomingCountsQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: incomingKeys.counts(nonprofitId),
    queryFn: async (): Promise<Counts> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("incoming_request_counts", { nonprofit_id: nonprofitId });
      if (error) throw error;
      return data as unknown as Counts;
    },
  });

/** How often the sidebar's count asks again. */
const WAITING_POLL_MS = 60_000;

/** Requests on which a decision of this organization is due (see `isDue`). */
export const waitingCountQuery = (nonprofitId: string) =>
  queryOptions({
    queryKey: [...incomingKeys.all(nonprofitId), "waiting"],
    queryFn: async (): Promise<number> => {
      const supabase = await getSupabase();
      const { count, error } = await supabase
        .from("incoming_requests")
        .select("request_id", { count: "exact", head: true })
        .eq("nonprofit_id", nonprofitId)
        .in("status", ["pending", "processing"])
        .eq("needs_more_proof", false);
      if (error) throw error;
      return count ?? 0;
    },
    refetchInterval: WAITING_POLL_MS,
  });

/** Rows per round trip of an export; the server gives no more at once. */
const EXPORT_CHUNK = 1000;

/** Every row that the filters let through, in their order. */
export async function exportRows(nonprofitId: string, filters: IncomingFilters): Promise<IncomingRow[]> {
  const rows: IncomingRow[] = [];
  for (;;) {
    const chunk = await selectRows(nonprofitId, filters, rows.length, rows.length + EXPORT_CHUNK - 1);
    rows.push(...chunk.rows);
    if (chunk.rows.length === 0 || rows.length >= chunk.total) return rows;
  }
}

export interface Abilities {
  approve: boolean;
  deny: boolean;
  ask_info: boolean;
  second_approval: boolean;
}

/** A request as its staff may read it. */
export interface VisibleRequest {
  visible: true;
  request: RequestRow;
  documents: RequestDocument[];
  timeline: TimelineEvent[];
  part: PartState;
  also_sent_to: OtherNonprofit[];
  /** Dollars; null for those who may not see the budget. */
  budget_remaining: number | null;
  second_approval_above: number | null;
  /** Name of who gave the first of two approvals. */
  first_approver: string | null;
  /** Dollars paid out on it. */
  paid: number;
  /** Earlier requests of the same address to this organization. */
  history_count: number;
  /** The reader made it: a colleague has to decide, and `can` says no to everything. */
  own: boolean;
  can: Abilities;
}

/** Another nonprofit has it: a line without the person. */
export interface TakenRequest {
  visible: false;
  request: { id: string; request_number: string; category: string; status: "taken"; submitted_at: string };
}

export type OpenedRequest = VisibleRequest | TakenRequest;

/** Opens a request for the organization: the first time it is marked as opened. */
export const openedRequestQuery = (nonprofitId: string, requestId: string) =>
  queryOptions({
    queryKey: incomingKeys.detail(nonprofitId, requestId),
    queryFn: async (): Promise<OpenedRequest> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("open_request", { request_id: requestId, nonprofit_id: nonprofitId });
      if (error) throw error;
      return data as unknown as OpenedRequest;
    },
    staleTime: 0,
  });

/** An address for one document, good for a minute. */
export async function documentUrl(path: string): Promise<string> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.storage.from("request-documents").createSignedUrl(path, 60);
  if (error) throw error;
  return data.signedUrl;
}

interface Target {
  nonprofitId: string;
  requestId: string;
}

/** A decision moves the list, the counts, the figures, the budget: all of the organization's reads are asked again. */
function useDecision<Input, Answer>(call: (input: Input) => Promise<Answer>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: call,
    onSettled: () =>
      Promise.all(
        ["incoming-requests", "nonprofit-dashboard", "budget", "notifications"].map((key) =>
          cache.invalidateQueries({ queryKey: [key] }),
        ),
      ),
  });
}

export interface Approval {
  status: "approved" | "processing";
  /** '$250'. */
  amount: string;
  second_approval_needed: boolean;
}

export const useApprove = ({ nonprofitId, requestId }: Target) =>
  useDecision(
    async ({ amount, acceptOverBudget }: { amount: number; acceptOverBudget: boolean }): Promise<Approval> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("approve_request", {
        request_id: requestId,
        nonprofit_id: nonprofitId,
        amount,
        accept_over_budget: acceptOverBudget,
      });
      if (error) throw error;
      return data as unknown as Approval;
    },
  );

export const useDeny = ({ nonprofitId, requestId }: Target) =>
  useDecision(async ({ reason, reasonCode }: { reason: string; reasonCode: string }) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("deny_request", {
      request_id: requestId,
      nonprofit_id: nonprofitId,
      reason,
      reason_code: reasonCode,
    });
    if (error) throw error;
  });

export const useAskInfo = ({ nonprofitId, requestId }: Target) =>
  useDecision(async ({ notes }: { notes: string }) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("request_more_info", {
      request_id: requestId,
      nonprofit_id: nonprofitId,
      notes,
    });
    if (error) throw error;
  });

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
