/** Reads and writes behind the request form: categories, directory, drafts, documents, account match, submission. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { isNotFound } from "@/lib/errors";
import { reads } from "@/lib/query-keys";
import { searchPatterns } from "@/lib/search";
import { z } from "zod";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import { emptyIdentity, type Answers } from "./answers";
import { columns } from "./columns";

const MINUTE = 60_000;

export interface Nonprofit {
  id: string;
  name: string;
  mission: string;
  location: string | null;
  category: string | null;
  average_response_time_days: number | null;
  /** Whether it helps with the requested kind of need. */
  helps: boolean;
  /** At the place that was named. */
  near: boolean;
}

export interface DirectoryFilter {
  /** Words of a name or a town. */
  search: string;
  /** Field of work; '' for all. */
  category: string;
  /** The kind of help that is asked for; null for any. */
  need: string | null;
  /** Where the person is; '' when nothing is said. */
  place: string;
}

export const DIRECTORY_PAGE = 20;

/** Active nonprofits, paginated: first those that help with the need, then those nearby, then by name. */
export const directoryQuery = ({ search, category, need, place }: DirectoryFilter) =>
  infiniteQueryOptions({
    queryKey: [...reads.directory, { search, category, need, place }],
    staleTime: MINUTE,
    initialPageParam: 0,
    queryFn: async ({ pageParam, signal }): Promise<{ rows: Nonprofit[]; total: number }> => {
      const supabase = await getSupabase();
      let query = supabase
        .rpc("nonprofits_for", { category_id: need ?? undefined, place: place || undefined }, { count: "exact" })
        .select("id, name, mission, location, category, average_response_time_days, helps, near");
      for (const pattern of searchPatterns(search)) query = query.like("search_text", pattern);
      if (category) query = query.eq("category", category);
      const from = pageParam * DIRECTORY_PAGE;
      const { data, error, count } = await query
        .order("helps", { ascending: false })
        .order("near", { ascending: false })
        .order("name")
        .order("id")
        .range(from, from + DIRECTORY_PAGE - 1)
        .abortSignal(signal);
      if (error) throw error;
      return { rows: data as Nonprofit[], total: count ?? 0 };
    },
    getNextPageParam: (last, pages) => (pages.length * DIRECTORY_PAGE < last.total ? pages.length : undefined),
  });

// ------------------------------------------------------------------------------------------------- drafts

const identityColumns = "first_name, last_name, email, phone, address, city, state, postal_code";

const draftRowSchema = z.object({
  id: z.string(),
  status: z.string(),
  form: z.enum(["wizard", "single"]),
  category: z.string().nullable(),
  category_id: z.string().nullable(),
  nonprofits: z.array(z.string()),
  description: z.string(),
  amount: z.string(),
  contact_consent: z.boolean(),
  sms_consent: z.boolean(),
  updated_at: z.string(),
  first_name: z.string().nullable(),
  last_name: z.string().nullable(),
  email: z.string().nullable(),
  phone: z.string().nullable(),
  address: z.string().nullable(),
  city: z.string().nullable(),
  state: z.string().nullable(),
  postal_code: z.string().nullable(),
});
type DraftRow = z.output<typeof draftRowSchema>;

/** The part of `request_detail()` for a draft. */
const draftSchema = z.object({
  request: draftRowSchema,
  documents: z.array(z.object({ id: z.string(), name: z.string(), size_bytes: z.number(), path: z.string() })),
  nonprofits: z.array(z.object({ id: z.string(), name: z.string(), active: z.boolean() })),
});

export interface LoadedDraft {
  answers: Omit<Answers, "key">;
  updatedAt: string;
  /** The number of chosen nonprofits that no longer accept requests; they are left out. */
  gone: number;
}

const identityOf = (row: Partial<DraftRow>): Answers["identity"] => ({
  ...emptyIdentity,
  firstName: row.first_name ?? "",
  lastName: row.last_name ?? "",
  email: row.email ?? "",
  phone: row.phone ?? "",
  address: row.address ?? "",
  city: row.city ?? "",
  state: row.state ?? "",
  postalCode: row.postal_code ?? "",
});

/** A saved draft of the caller; null when there is none under this id (sent, deleted, another person's). */
export async function readDraft(id: string): Promise<LoadedDraft | null> {
  const detail = await rpc("request_detail", { id }, draftSchema).catch((error: unknown) => {
    if (isNotFound(error)) return null;
    throw error;
  });
  if (detail === null) return null;
  const { request: row, documents, nonprofits } = detail;
  if (row.status !== "draft") return null;
  const chosen = nonprofits.filter(({ active }) => active).map(({ id, name }) => ({ id, name }));
  return {
    updatedAt: row.updated_at,
    gone: row.nonprofits.length - chosen.length,
    answers: {
      draftId: row.id,
      form: row.form,
      category: row.category_id ? { id: row.category_id, name: row.category ?? "" } : null,
      nonprofits: chosen,
      identity: identityOf(row),
      description: row.description,
      amount: row.amount === "Not specified" ? "" : row.amount.replace("$", ""),
      consent: row.contact_consent,
      texts: row.sms_consent,
      documents: documents.map((d) => ({
        id: d.id,
        name: d.name,
        size: d.size_bytes,
        path: d.path,
        slot: false,
      })),
      account: null,
    },
  };
}

/** `readDraft` at the start of a visit. */
export const draftQuery = (id: string) =>
  queryOptions({
    queryKey: [...reads.requestForm, "draft", id],
    staleTime: 0,
    gcTime: 0,
    queryFn: () => readDraft(id),
  });

/** Contact data of the caller's last request, to spare them typing it again. */
export const lastIdentityQuery = (userId: string) =>
  queryOptions({
    queryKey: [...reads.requestForm, "identity", userId],
    staleTime: 5 * MINUTE,
    queryFn: async (): Promise<Answers["identity"] | null> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase
        .from("requests")
        .select(identityColumns)
        .eq("user_id", userId)
        .neq("status", "draft")
        .order("submitted_at", { ascending: false })
        .limit(1)
        .maybeSingle();
      if (error) throw error;
      return data ? identityOf(data as Partial<DraftRow>) : null;
    },
  });

const savedDraftSchema = z.object({
  id: z.string(),
  updated_at: z.string(),
});
export type SavedDraft = z.output<typeof savedDraftSchema>;

/**
 * Creates or updates the draft. `step` is the progress step, 1 to 5; `seen` the `updated_at` that the page knows. If the draft was
 * changed elsewhere since, the server answers `draft_changed`.
 */
export const saveDraft = (answers: Answers, step: number, seen: string | null): Promise<SavedDraft> =>
  rpc(
    "save_draft",
    {
      input: {
        ...columns(answers),
        step,
        ...(answers.draftId ? { id: answers.draftId, ...(seen ? { seen } : {}) } : { key: answers.key }),
      },
    },
    savedDraftSchema,
  );

// ---------------------------------------------------------------------------------------------- submission

const submittedSchema = z.object({
  id: z.string(),
  request_number: z.string(),
  submitted_at: z.string(),
  email: z.string(),
});
export type Submitted = z.output<typeof submittedSchema>;

/** Sends the request. The same key gives the same request, however often it is sent. `seen`: as in `saveDraft`. */
export const submitRequest = (answers: Answers, signedIn: boolean, seen: string | null): Promise<Submitted> =>
  rpc(
    "submit_request",
    {
      input: {
        ...columns(answers),
        key: answers.key,
        slots: answers.documents.filter(({ slot }) => slot).map(({ id }) => id),
        ...(signedIn && answers.draftId ? { draft_id: answers.draftId, ...(seen ? { seen } : {}) } : {}),
        ...(!signedIn && answers.account ? { proof: answers.account.proof, account_id: answers.account.id } : {}),
      },
    },
    submittedSchema,
  );
