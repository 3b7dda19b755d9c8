/** Documents of requests on their way into storage: for an account into the request's folder, for a guest into a slot. */
import { z } from "zod";
import type { Database } from "@/types/database";
import { stoppable } from "./abortable";
import { fileExtension, mimeTypeOf } from "./files";
import { newKey } from "./new-key";
import { rpc } from "./rpc";
import { getSupabase } from "./supabase";

const BUCKET = "request-documents";

/** A document that has reached the server. */
export interface StoredDocument {
  /** Row of request_documents, or a guest's upload slot. */
  id: string;
  name: string;
  /** Bytes. */
  size: number;
  path: string;
  /** Sent signed out: `id` is its slot, and whatever takes it names it. */
  slot: boolean;
}

/** What people call the file, as long as the database takes it. */
const nameOf = (file: File) => file.name.slice(-255);

/** Puts a file into a request of the caller's account: the object first, then its row. */
export async function uploadToRequest(requestId: string, file: File, signal?: AbortSignal): Promise<StoredDocument> {
  const supabase = await getSupabase();
  const path = `${requestId}/${newKey()}.${fileExtension(file.name) || "bin"}`;
  const mimeType = mimeTypeOf(file);
  const { error: refused } = await stoppable(path, signal, () =>
    supabase.storage.from(BUCKET).upload(path, file, { contentType: mimeType }),
  );
  if (refused) throw refused;
  const { data, error } = await supabase
    .from("request_documents")
    .insert({ request_id: requestId, name: nameOf(file), path, mime_type: mimeType, size_bytes: file.size })
    .select("id")
    .single();
  if (error) {
    await supabase.storage.from(BUCKET).remove([path]);
    throw error;
  }
  return { id: data.id, name: file.name, size: file.size, path, slot: false };
}

const slotSchema = z.object({ id: z.string(), bucket: z.string(), path: z.string() });

/** Signed out: a place for one file under `key`, opened by a short-lived signed URL. */
export async function uploadToSlot(key: string, file: File, signal?: AbortSignal): Promise<StoredDocument> {
  const supabase = await getSupabase();
  const mimeType = mimeTypeOf(file);
  const args: Database["public"]["Functions"]["create_guest_upload_slot"]["Args"] = {
    key,
    name: nameOf(file),
    mime_type: mimeType,
    size_bytes: file.size,
  };
  const slot = await rpc("create_guest_upload_slot", args, slotSchema);
  const bucket = supabase.storage.from(slot.bucket);
  const signed = await bucket.createSignedUploadUrl(slot.path);
  const sent = signed.error
    ? signed
    : await stoppable(slot.path, signal, () =>
        bucket.uploadToSignedUrl(slot.path, signed.data.token, file, { contentType: mimeType }),
      );
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
  await supabase.storage.from(BUCKET).remove([document.path]);
}

/** An address that downloads one document, good for a minute. */
export async function documentUrl(path: string, options?: { download: string }): Promise<string> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.storage.from(BUCKET).createSignedUrl(path, 60, options);
  if (error) throw error;
  return data.signedUrl;
}
