/** Reads and writes of the requester's own requests. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import type { RequestStatus } from "@/components/status-badge";
import { fileExtension, mimeTypeOf } from "@/lib/files";
import { newKey } from "@/lib/new-key";
import { getSupabase } from "@/lib/supabase";
import { instants, type RequestFilters } from "./filters";

const DOCUMENTS = "request-documents";
export const PAGE_SIZE = 10;
/** Section 9: recent requests on the dashboard. */
export const RECENT = 5;

export interface RequestLine {
  id: string;
  request_number: string;
  category: string;
  amount: string;
  amount_requested: number | null;
  amount_approved: number | null;
  status: RequestStatus;
  needs_more_proof: boolean;
  nonprofit_names: string[];
  submitted_at: string;
}

const lineColumns =
  "id, request_number, category, amount, amount_requested, amount_approved, status, needs_more_proof, nonprofit_names, submitted_at";

/** The caller's sent requests, filtered and cut on the server; what waits for the reader comes first. */
export const requestsQuery = (userId: string, filters: RequestFilters, pageSize = PAGE_SIZE) =>
  queryOptions({
    queryKey: ["my-requests", userId, "list", filters, pageSize],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<{ rows: RequestLine[]; total: number }> => {
      const supabase = await getSupabase();
      let query = supabase.from("my_requests").select(lineColumns, { count: "exact" });
      const words = filters.search
        .toLowerCase()
        .replace(/[%_\\*]/g, " ")
        .trim()
        .split(/\s+/)
        .filter(Boolean);
      for (const word of words) query = query.like("search_text", `%${word}%`);
      if (filters.status !== "all") query = query.eq("status", filters.status);
      if (filters.category) query = query.eq("category", filters.category);
      const { gte, lt } = instants(filters);
      if (gte) query = query.gte("submitted_at", gte);
      if (lt) query = query.lt("submitted_at", lt);
      const from = (filters.page - 1) * pageSize;
      const { data, error, count } = await query
        .order("needs_more_proof", { ascending: false })
        .order("submitted_at", { ascending: false })
        .order("id")
        .range(from, from + pageSize - 1)
        .abortSignal(signal);
      // a page past the end, after requests went away or an address was edited
      if (error?.code === "PGRST103") return { rows: [], total: count ?? 0 };
      if (error) throw error;
      return { rows: data as RequestLine[], total: count ?? 0 };
    },
  });

export interface Dashboard {
  total_aid_received: number;
  total_requests: number;
  in_process: number;
  nonprofits_connected: number;
  drafts: number;
  to_do: {
    id: string;
    request_number: string;
    category: string;
    pending_notes: string;
    nonprofit_name: string | null;
  }[];
}

export const dashboardQuery = (userId: string) =>
  queryOptions({
    queryKey: ["my-requests", userId, "dashboard"],
    queryFn: async (): Promise<Dashboard> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("requester_dashboard");
      if (error) throw error;
      return data as unknown as Dashboard;
    },
  });

/** The names of the global categories, for the filters. */
export const categoryNamesQuery = queryOptions({
  queryKey: ["my-requests", "categories"],
  staleTime: 5 * 60_000,
  queryFn: async (): Promise<string[]> => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.from("categories").select("name").is("nonprofit_id", null).order("id");
    if (error) throw error;
    return (data as { name: string }[]).map(({ name }) => name);
  },
});

// -------------------------------------------------------------------------------------------------- drafts

export interface Draft {
  id: string;
  title: string | null;
  description: string;
  category: string | null;
  amount: string;
  updated_at: string;
}

interface DraftRow extends Omit<Draft, "category"> {
  categories: { name: string } | null;
}

export const draftsQuery = (userId: string) =>
  queryOptions({
    queryKey: ["my-requests", userId, "drafts"],
    queryFn: async (): Promise<Draft[]> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("requests")
        .select(
          "id, description, category_id, amount, created_at, updated_at, request_number, status, title, categories(name)",
        )
        .eq("user_id", userId)
        .eq("status", "draft")
        .order("updated_at", { ascending: false });
      if (error) throw error;
      return (data as unknown as DraftRow[]).map(({ categories, ...row }) => ({
        ...row,
        category: categories?.name ?? null,
      }));
    },
  });

export function useDeleteDraft() {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase.from("requests").delete().eq("id", id).eq("status", "draft");
      if (error) throw error;
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["my-requests"] }),
  });
}

// -------------------------------------------------------------------------------------------------- detail

export interface RequestRow {
  id: string;
  request_number: string;
  category: string;
  description: string;
  amount: string;
  amount_requested: number | null;
  amount_approved: number | null;
  status: RequestStatus;
  needs_more_proof: boolean;
  pending_notes: string | null;
  denial_reason: string | null;
  claimed_by: string | null;
  first_name: string;
  last_name: string;
  email: string;
  phone: string;
  address: string;
  city: string;
  state: string;
  postal_code: string;
  submitted_at: string;
  review_started_at: string | null;
  decided_at: string | null;
}

export interface RequestDocument {
  id: string;
  name: string;
  path: string;
  size_bytes: number;
  kind: "submission" | "additional";
  created_at: string;
}

export interface TimelineEvent {
  type: string;
  actor: "requester" | "nonprofit" | "system";
  nonprofit_name: string | null;
  note: string | null;
  created_at: string;
}

export type PartState = "open" | "claimed" | "taken" | "denied" | "withdrawn" | "closed";

export interface RequestPart {
  id: string;
  name: string;
  location: string | null;
  average_response_time_days: number | null;
  state: PartState | null;
}

export interface RequestDetail {
  request: RequestRow;
  documents: RequestDocument[];
  timeline: TimelineEvent[];
  nonprofits: RequestPart[];
  can: { cancel: boolean; add_documents: boolean; resubmit: boolean; edit: boolean };
}

/** One request of the caller by id or number. Fails with 404 for another person's. */
export const detailQuery = (userId: string, id: string) =>
  queryOptions({
    queryKey: ["my-requests", userId, "detail", id],
    queryFn: async (): Promise<RequestDetail> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("request_detail", { id });
      if (error) throw error;
      return data as unknown as RequestDetail;
    },
  });

function useRequestWrite<I, O>(mutationFn: (input: I) => Promise<O>) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn,
    // also after a refusal: then the page shows an old state
    onSettled: () =>
      Promise.all([
        queryClient.invalidateQueries({ queryKey: ["my-requests"] }),
        queryClient.invalidateQueries({ queryKey: ["notifications"] }),
      ]),
  });
}

export const useWithdraw = () =>
  useRequestWrite(async (id: string) => {
    const supabase = await getSupabase();
    const { error } = await supabase.rpc("withdraw_request", { id });
    if (error) throw error;
  });

export const useResubmit = () =>
  useRequestWrite(async (id: string): Promise<string> => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.rpc("resubmit_request", { id });
    if (error) throw error;
    return (data as { draft_id: string }).draft_id;
  });

/** Puts one more document into a request that waits for proof. */
export async function uploadAdditional(requestId: string, file: File): Promise<void> {
  const supabase = await getSupabase();
  const path = `${requestId}/${newKey()}.${fileExtension(file.name) || "bin"}`;
  const mimeType = mimeTypeOf(file);
  const { error: refused } = await supabase.storage.from(DOCUMENTS).upload(path, file, { contentType: mimeType });
  if (refused) throw refused;
  const { error } = await supabase
    .from("request_documents")
    .insert({ request_id: requestId, name: file.name.slice(-255), path, mime_type: mimeType, size_bytes: file.size });
  if (error) {
    await supabase.storage.from(DOCUMENTS).remove([path]);
    throw error;
  }
}

/** Tells the nonprofit that the answer is complete; gives how many documents came with it. */
export async function answerInfo(id: string, message: string): Promise<number> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc("answer_request_info", { id, message: message.trim() || undefined });
  if (error) throw error;
  return (data as { documents: number }).documents;
}

/** An address that downloads one document, good for a minute. */
export async function documentUrl(path: string, name: string): Promise<string> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.storage.from(DOCUMENTS).createSignedUrl(path, 60, { download: name });
  if (error) throw error;
  return data.signedUrl;
}
