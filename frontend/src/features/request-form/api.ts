/** Reads and writes behind the request form: categories, directory, drafts, documents, account match, submission. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { isNotFound } from "@/lib/errors";
import { fileExtension, mimeTypeOf } from "@/lib/files";
import { newKey } from "@/lib/new-key";
import { getSupabase } from "@/lib/supabase";
import { emptyIdentity, type Answers, type StoredDocument } from "./answers";
import { amountText } from "./schema";

const MINUTE = 60_000;
const DOCUMENTS = "request-documents";

export interface Category {
  id: string;
  name: string;
  description: string | null;
}

/** The kinds of help the platform offers, from the `get-categories` function. */
export const categoriesQuery = queryOptions({
  queryKey: ["request-form", "categories"],
  staleTime: 5 * MINUTE,
  queryFn: async (): Promise<Category[]> => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.functions.invoke<{ categories: Category[] }>("get-categories");
    if (error) throw error;
    return data?.categories ?? [];
  },
});

export interface Nonprofit {
  id: string;
  name: string;
  mission: string;
  location: string | null;
  category: string | null;
  average_response_time_days: number | null;
}

export interface DirectoryFilter {
  /** Words of a name or a town. */
  search: string;
  /** Field of work; '' for all. */
  category: string;
}

export const DIRECTORY_PAGE = 20;

/** A pattern for `ilike` inside `or=(…)`: wildcards and the list's own signs are taken out of what was typed. */
export const likePattern = (typed: string): string =>
  `*${typed
    .replace(/[*%_\\",()]/g, " ")
    .trim()
    .replace(/\s+/g, "*")}*`;

/** Active nonprofits by name, a page at a time. */
export const directoryQuery = ({ search, category }: DirectoryFilter) =>
  infiniteQueryOptions({
    queryKey: ["directory", { search, category }],
    staleTime: MINUTE,
    initialPageParam: 0,
    queryFn: async ({ pageParam, signal }): Promise<{ rows: Nonprofit[]; total: number }> => {
      const supabase = await getSupabase();
      let query = supabase
        .from("nonprofits")
        .select("id, name, mission, location, category, average_response_time_days", { count: "exact" })
        .eq("status", "active");
      if (search) query = query.or(`name.ilike."${likePattern(search)}",location.ilike."${likePattern(search)}"`);
      if (category) query = query.eq("category", category);
      const from = pageParam * DIRECTORY_PAGE;
      const { data, error, count } = await query
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

interface DraftRow {
  id: string;
  status: string;
  form: "wizard" | "single";
  category: string | null;
  category_id: string | null;
  nonprofits: string[];
  description: string;
  amount: string;
  contact_consent: boolean;
  updated_at: string;
  first_name: string | null;
  last_name: string | null;
  email: string | null;
  phone: string | null;
  address: string | null;
  city: string | null;
  state: string | null;
  postal_code: string | null;
}

/** What `request_detail()` tells of a draft. */
interface DraftDetail {
  request: DraftRow;
  documents: { id: string; name: string; size_bytes: number; path: string }[];
  nonprofits: { id: string; name: string; active: boolean }[];
}

export interface LoadedDraft {
  answers: Omit<Answers, "key">;
  updatedAt: string;
  /** How many chosen nonprofits take no requests any more; they are left out. */
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
export const draftQuery = (id: string) =>
  queryOptions({
    queryKey: ["request-form", "draft", id],
    staleTime: 0,
    gcTime: 0,
    queryFn: async (): Promise<LoadedDraft | null> => {
      const supabase = await getSupabase();
      const { data, error } = await supabase.rpc("request_detail", { id });
      if (error && isNotFound(error)) return null;
      if (error) throw error;
      const { request: row, documents, nonprofits } = data as unknown as DraftDetail;
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
    },
  });

/** Contact data of the caller's last request, to spare them typing it again. */
export const lastIdentityQuery = (userId: string) =>
  queryOptions({
    queryKey: ["request-form", "identity", userId],
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

/** The columns both a draft and a submission carry. */
function columns(answers: Answers) {
  return {
    category_id: answers.category?.id ?? null,
    nonprofits: answers.nonprofits.map(({ id }) => id),
    description: answers.description,
    amount: amountText(answers.amount),
    contact_consent: answers.consent,
    form: answers.form,
    first_name: answers.identity.firstName.trim(),
    last_name: answers.identity.lastName.trim(),
    email: answers.identity.email.trim(),
    phone: answers.identity.phone.trim(),
    address: answers.identity.address.trim(),
    city: answers.identity.city.trim(),
    state: answers.identity.state.trim(),
    postal_code: answers.identity.postalCode.trim(),
  };
}

export interface SavedDraft {
  id: string;
  updated_at: string;
}

/** Writes the draft's row (makes it when there is none). `step` is the bridge's number, 1 to 5. */
export async function saveDraft(answers: Answers, step: number): Promise<SavedDraft> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc("save_draft", {
    input: { ...columns(answers), step, ...(answers.draftId ? { id: answers.draftId } : { key: answers.key }) },
  });
  if (error) throw error;
  return data as unknown as SavedDraft;
}

// ---------------------------------------------------------------------------------------------- documents

/** Puts a file into the caller's draft: the object first, then its row. */
export async function uploadToDraft(draftId: string, file: File): Promise<StoredDocument> {
  const supabase = await getSupabase();
  const path = `${draftId}/${newKey()}.${fileExtension(file.name) || "bin"}`;
  const mimeType = mimeTypeOf(file);
  const { error: refused } = await supabase.storage.from(DOCUMENTS).upload(path, file, { contentType: mimeType });
  if (refused) throw refused;
  const { data, error } = await supabase
    .from("request_documents")
    .insert({ request_id: draftId, name: file.name.slice(-255), path, mime_type: mimeType, size_bytes: file.size })
    .select("id")
    .single();
  if (error) {
    await supabase.storage.from(DOCUMENTS).remove([path]);
    throw error;
  }
  return { id: (data as { id: string }).id, name: file.name, size: file.size, path, slot: false };
}

/** Signed out: a place for one file of the unsent request `key`, opened by a short-lived signed URL. */
export async function uploadAsGuest(key: string, file: File): Promise<StoredDocument> {
  const supabase = await getSupabase();
  const mimeType = mimeTypeOf(file);
  const { data, error } = await supabase.rpc("create_guest_upload_slot", {
    key,
    name: file.name.slice(-255),
    mime_type: mimeType,
    size_bytes: file.size,
  });
  if (error) throw error;
  const slot = data as { id: string; bucket: string; path: string };
  const bucket = supabase.storage.from(slot.bucket);
  const signed = await bucket.createSignedUploadUrl(slot.path);
  const sent = signed.error
    ? signed
    : await bucket.uploadToSignedUrl(slot.path, signed.data.token, file, { contentType: mimeType });
  if (sent.error) {
    await supabase.rpc("remove_guest_upload_slot", { id: slot.id });
    throw sent.error;
  }
  return { id: slot.id, name: file.name, size: file.size, path: slot.path, slot: true };
}

/** Takes a file out of an unsent request. */
export async function removeDocument(document: StoredDocument): Promise<void> {
  const supabase = await getSupabase();
  if (document.slot) {
    const { error } = await supabase.rpc("remove_guest_upload_slot", { id: document.id });
    if (error) throw error;
    return;
  }
  const { error } = await supabase.from("request_documents").delete().eq("id", document.id);
  if (error) throw error;
  // The row is what counts; an object left behind is swept with the draft.
  await supabase.storage.from(DOCUMENTS).remove([document.path]);
}

// ---------------------------------------------------------------------------------------------- submission

export interface Submitted {
  id: string;
  request_number: string;
  submitted_at: string;
  email: string;
}

/** Sends the request. The same key gives the same request, however often it is sent. */
export async function submitRequest(answers: Answers, signedIn: boolean): Promise<Submitted> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc("submit_request", {
    input: {
      ...columns(answers),
      key: answers.key,
      slots: answers.documents.filter(({ slot }) => slot).map(({ id }) => id),
      ...(signedIn && answers.draftId ? { draft_id: answers.draftId } : {}),
      ...(!signedIn && answers.account ? { proof: answers.account.proof, account_id: answers.account.id } : {}),
    },
  });
  if (error) throw error;
  return data as unknown as Submitted;
}
