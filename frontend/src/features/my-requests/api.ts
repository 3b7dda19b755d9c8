/** Reads and writes of the requester's own requests. */
import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { z } from "zod";
import type { RequestStatus } from "@/components/status-badge";
import { whileDown } from "@/lib/live";
import { reads } from "@/lib/query-keys";
import { nothing, rpc } from "@/lib/rpc";
import { searchPatterns } from "@/lib/search";
import { forgetDraft } from "@/lib/stored";
import { getSupabase } from "@/lib/supabase";
import { instants, type RequestFilters } from "./filters";

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

/** The caller's sent requests, filtered and paginated on the server; those waiting for the reader come first. */
export const requestsQuery = (userId: string, filters: RequestFilters, pageSize = PAGE_SIZE) =>
  queryOptions({
    queryKey: [...reads.myRequests, userId, "list", filters, pageSize],
    placeholderData: keepPreviousData,
    refetchInterval: whileDown,
    queryFn: async ({ signal }): Promise<{ rows: RequestLine[]; total: number }> => {
      const supabase = await getSupabase();
      let query = supabase.from("my_requests").select(lineColumns, { count: "exact" });
      for (const pattern of searchPatterns(filters.search)) query = query.like("search_text", pattern);
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
      // a page past the end, after requests disappeared or the URL was edited
      if (error?.code === "PGRST103") return { rows: [], total: count ?? 0 };
      if (error) throw error;
      return { rows: data as RequestLine[], total: count ?? 0 };
    },
  });

const dashboardSchema = z.object({
  total_aid_received: z.number(),
  total_requests: z.number(),
  in_process: z.number(),
  nonprofits_connected: z.number(),
  drafts: z.number(),
  to_do: z.array(
    z.object({
      id: z.string(),
      request_number: z.string(),
      category: z.string(),
      pending_notes: z.string(),
      nonprofit_name: z.string().nullable(),
    }),
  ),
});
export type Dashboard = z.output<typeof dashboardSchema>;

export const dashboardQuery = (userId: string) =>
  queryOptions({
    queryKey: [...reads.myRequests, userId, "dashboard"],
    queryFn: () => rpc("requester_dashboard", {} as never, dashboardSchema),
    refetchInterval: whileDown,
  });

/** The names of the global categories, for the filters. */
export const categoryNamesQuery = queryOptions({
  queryKey: [...reads.myRequests, "categories"],
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

const draftRowSchema = z.object({
  id: z.string(),
  title: z.string().nullable(),
  description: z.string(),
  amount: z.string(),
  updated_at: z.string(),
  categories: z.object({ name: z.string() }).nullable(),
});

export const draftsQuery = (userId: string) =>
  queryOptions({
    queryKey: [...reads.myRequests, userId, "drafts"],
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
      return z
        .array(draftRowSchema)
        .parse(data)
        .map(({ categories, ...row }) => ({
          ...row,
          category: categories?.name ?? null,
        }));
    },
  });

export function useDeleteDraft(userId: string) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => {
      const supabase = await getSupabase();
      const { error } = await supabase.from("requests").delete().eq("id", id).eq("status", "draft");
      if (error) throw error;
    },
    onSuccess: (_, id) => forgetDraft(userId, id),
    onSettled: () => queryClient.invalidateQueries({ queryKey: reads.myRequests }),
  });
}

// -------------------------------------------------------------------------------------------------- detail

const requestSchema = z.object({
  id: z.string(),
  request_number: z.string().nullable(),
  category: z.string().nullable(),
  description: z.string(),
  amount: z.string(),
  amount_requested: z.number().nullable(),
  amount_approved: z.number().nullable(),
  status: z.enum(["draft", "pending", "processing", "approved", "declined", "withdrawn"]),
  needs_more_proof: z.boolean(),
  pending_notes: z.string().nullable(),
  denial_reason: z.string().nullable(),
  claimed_by: z.string().nullable(),
  first_name: z.string().nullable(),
  last_name: z.string().nullable(),
  email: z.string().nullable(),
  phone: z.string().nullable(),
  sms_consent: z.boolean(),
  address: z.string().nullable(),
  city: z.string().nullable(),
  state: z.string().nullable(),
  postal_code: z.string().nullable(),
  submitted_at: z.string().nullable(),
  review_started_at: z.string().nullable(),
  decided_at: z.string().nullable(),
});
/** A request that was sent has all of these. */
export type RequestRow = Sent<z.output<typeof requestSchema>>;
type Whole =
  | "request_number"
  | "category"
  | "first_name"
  | "last_name"
  | "email"
  | "phone"
  | "address"
  | "city"
  | "state"
  | "postal_code"
  | "submitted_at";
type Sent<Row extends Record<Whole, string | null>> = Omit<Row, Whole | "status"> &
  Record<Whole, string> & { status: RequestStatus };

const documentSchema = z.object({
  id: z.string(),
  name: z.string(),
  path: z.string(),
  size_bytes: z.number(),
  kind: z.enum(["submission", "additional"]),
  created_at: z.string(),
});
export type RequestDocument = z.output<typeof documentSchema>;

const timelineEventSchema = z.object({
  type: z.string(),
  actor: z.enum(["requester", "nonprofit", "system"]),
  nonprofit_name: z.string().nullable(),
  note: z.string().nullable(),
  created_at: z.string(),
});
export type TimelineEvent = z.output<typeof timelineEventSchema>;

const partSchema = z.object({
  id: z.string(),
  name: z.string(),
  location: z.string().nullable(),
  average_response_time_days: z.number().nullable(),
  state: z.enum(["open", "claimed", "taken", "denied", "withdrawn", "closed"]).nullable(),
});
export type RequestPart = z.output<typeof partSchema>;

const detailSchema = z.object({
  request: requestSchema,
  documents: z.array(documentSchema),
  timeline: z.array(timelineEventSchema),
  nonprofits: z.array(partSchema),
  can: z.object({
    cancel: z.boolean(),
    add_documents: z.boolean(),
    resubmit: z.boolean(),
    edit: z.boolean(),
    correct: z.boolean(),
  }),
});
export interface RequestDetail extends Omit<z.output<typeof detailSchema>, "request"> {
  request: RequestRow;
}

/** A guest's access to one request, obtained with a mailed code. Null for an account. */
export interface RequestAccess {
  access: string;
  /** The key for uploading documents of an answer into slots. */
  uploadKey: string;
}

/** The same on a page, with what to do once it has ended. */
export interface GuestAccess extends RequestAccess {
  onEnded: () => void;
}

/**
 * One request of the caller by id or number. Fails with 404 for another person's, with 401 if a guest's access has
 * ended.
 */
export const detailQuery = (owner: string, id: string, access?: string) =>
  queryOptions({
    queryKey: [...reads.myRequests, owner, "detail", id],
    // a draft lacks some fields, and leads to the form
    queryFn: async () => (await rpc("request_detail", { id, access }, detailSchema)) as RequestDetail,
    refetchInterval: whileDown,
  });

function useRequestWrite<I, O>(mutationFn: (input: I) => Promise<O>) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn,
    // also after a refusal, because the page then shows an outdated state
    onSettled: () =>
      Promise.all([
        queryClient.invalidateQueries({ queryKey: reads.myRequests }),
        queryClient.invalidateQueries({ queryKey: reads.notifications }),
      ]),
  });
}

export const useWithdraw = (access?: string) =>
  useRequestWrite((id: string) => rpc("withdraw_request", { id, access }, nothing));

/** The corrected contact data; the mail address cannot be changed. */
export type Correction = Pick<
  RequestRow,
  "first_name" | "last_name" | "phone" | "sms_consent" | "address" | "city" | "state" | "postal_code"
>;

export const useCorrect = (id: string, access?: string) =>
  useRequestWrite((input: Correction) =>
    rpc("correct_request", { id, input, access }, z.object({ corrected: z.boolean() })),
  );

export const useResubmit = () =>
  useRequestWrite(
    async (id: string) => (await rpc("resubmit_request", { id }, z.object({ draft_id: z.string() }))).draft_id,
  );

/** Tells the nonprofit that the answer is complete; returns the number of its documents. */
export async function answerInfo(id: string, message: string, access?: string, slots?: string[]): Promise<number> {
  const args = { id, message: message.trim() || undefined, access, slots };
  return (await rpc("answer_request_info", args, z.object({ documents: z.number() }))).documents;
}

// ---------------------------------------------------------------------------------------------- number and code

/**
 * Sends a code for a request by mail or, with consent, by text. The answer is the same whether or not the request
 * exists.
 */
export const sendRequestCode = ({ number, channel }: { number: string; channel: "email" | "sms" }) =>
  rpc("send_request_code", { number, channel }, nothing);

const codeCheckSchema = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    access: z.string(),
    upload_key: z.string(),
    expires_at: z.string(),
    request_number: z.string(),
  }),
  z.object({ ok: z.literal(false), reason: z.enum(["wrong_code", "expired"]), tries_left: z.number() }),
]);
export type RequestCodeCheck = z.output<typeof codeCheckSchema>;

export const checkRequestCode = (number: string, code: string) =>
  rpc("check_request_code", { number, code }, codeCheckSchema);

export const endRequestAccess = (access: string) => rpc("end_request_access", { access }, nothing);
