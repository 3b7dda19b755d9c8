/** Uploads documents of requests: for an account into the request's folder, for a guest into a slot. */
import { z } from "zod";
import type { Database } from "@/types/database";
import { nothingWritten } from "./errors";
import { fileExtension, mimeTypeOf } from "./files";
import { loadAppConfig } from "./env";
import { newKey } from "./new-key";
import { uploadResumable } from "./resumable";
import { rpc } from "./rpc";
import { shrinkPhoto } from "./shrink-photo";
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
  /** Uploaded while signed out: `id` is its slot. */
  slot: boolean;
}

/** The file's name, shortened to the database's limit. */
const nameOf = (file: File) => file.name.slice(-255);

export interface Sending {
  signal?: AbortSignal;
  /** Percent of the file that has left this device. */
  onProgress?: (percent: number) => void;
}

async function accountHeaders(): Promise<Record<string, string>> {
  const supabase = await getSupabase();
  const { publishableKey } = await loadAppConfig();
  const { data } = await supabase.auth.getSession();
  return { apikey: publishableKey, Authorization: `Bearer ${data.session?.access_token ?? publishableKey}` };
}

/** The stored object of a file, without its row. */
interface StoredObject {
  requestId: string;
  path: string;
  file: File;
  mimeType: string;
}

/** Chosen files whose object is stored and whose row may be: its answer was lost. Sending one again continues here. */
const unsettled = new WeakMap<File, StoredObject>();

async function storeObject(requestId: string, chosen: File, sending: Sending): Promise<StoredObject> {
  const file = await shrinkPhoto(chosen);
  const path = `${requestId}/${newKey()}.${fileExtension(file.name) || "bin"}`;
  const mimeType = mimeTypeOf(file);
  await uploadResumable({
    bucket: BUCKET,
    path,
    file,
    type: mimeType,
    headers: accountHeaders,
    signed: false,
    ...sending,
  });
  return { requestId, path, file, mimeType };
}

/** Puts a file into a request of the caller's account: the object first, then its row. */
export async function uploadToRequest(requestId: string, chosen: File, sending: Sending = {}): Promise<StoredDocument> {
  const supabase = await getSupabase();
  const before = unsettled.get(chosen);
  const object = before?.requestId === requestId ? before : await storeObject(requestId, chosen, sending);
  const { path, file, mimeType } = object;
  const stored = (id: string): StoredDocument => {
    unsettled.delete(chosen);
    return { id, name: file.name, size: file.size, path, slot: false };
  };
  const { data, error } = await supabase
    .from("request_documents")
    .insert({ request_id: requestId, name: nameOf(file), path, mime_type: mimeType, size_bytes: file.size })
    .select("id")
    .single();
  if (!error) return stored(data.id);

  // A row without its object would make the request impossible to send, so the object is removed only if there is no row.
  const found = await supabase
    .from("request_documents")
    .select("id")
    .eq("request_id", requestId)
    .eq("path", path)
    .maybeSingle();
  if (found.data) return stored(found.data.id);
  if (!found.error && nothingWritten(error)) {
    unsettled.delete(chosen);
    await supabase.storage.from(BUCKET).remove([path]);
  } else {
    // the server deletes objects without a row after some hours
    unsettled.set(chosen, object);
  }
  throw error;
}

/** Takes back what may have arrived of a file whose upload failed, as far as the connection allows. */
export async function withdrawUpload(chosen: File): Promise<void> {
  const object = unsettled.get(chosen);
  if (!object) return;
  unsettled.delete(chosen);
  const { requestId, path } = object;
  const supabase = await getSupabase();
  const { error } = await supabase.from("request_documents").delete().eq("request_id", requestId).eq("path", path);
  if (!error) await supabase.storage.from(BUCKET).remove([path]);
}

const slotSchema = z.object({ id: z.string(), bucket: z.string(), path: z.string() });

/** Signed out: uploads a file into a slot under `key`, with a short-lived signed token. */
export async function uploadToSlot(key: string, chosen: File, sending: Sending = {}): Promise<StoredDocument> {
  const supabase = await getSupabase();
  const file = await shrinkPhoto(chosen);
  const mimeType = mimeTypeOf(file);
  const args: Database["public"]["Functions"]["create_guest_upload_slot"]["Args"] = {
    key,
    name: nameOf(file),
    mime_type: mimeType,
    size_bytes: file.size,
  };
  const slot = await rpc("create_guest_upload_slot", args, slotSchema);
  try {
    const signed = await supabase.storage.from(slot.bucket).createSignedUploadUrl(slot.path);
    if (signed.error) throw signed.error;
    const { token } = signed.data;
    const { publishableKey } = await loadAppConfig();
    await uploadResumable({
      bucket: slot.bucket,
      path: slot.path,
      file,
      type: mimeType,
      headers: () => Promise.resolve({ apikey: publishableKey, "x-signature": token }),
      signed: true,
      ...sending,
    });
  } catch (error) {
    await supabase.rpc("remove_guest_upload_slot", { id: slot.id }).then(undefined, () => undefined);
    throw error;
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
  // Only the row matters; a remaining object is swept with the draft.
  await supabase.storage.from(BUCKET).remove([document.path]);
}

/** A download URL for one document, valid for a minute. */
export async function documentUrl(path: string, options?: { download: string }): Promise<string> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.storage.from(BUCKET).createSignedUrl(path, 60, options);
  if (error) throw error;
  return data.signedUrl;
}
