/** A profile's photo, an organization's logo: one file in a folder of its owner. */
import { nothingWritten } from "./errors";
import { newKey } from "./new-key";
import { getSupabase } from "./supabase";

/** A picture change takes at most this long. */
const SETTLED_MS = 60 * 60_000;

export interface PictureChange {
  bucket: "profile-photos" | "logos";
  /** The owner's folder: the id of the person or the organization. */
  folder: string;
  file: File;
  /** With its dot. */
  extension: string;
  /** Object name of the picture shown until now. */
  before: string | null;
  /** Points the owner's row at the new object name; throws what the server answers. */
  pointTo: (path: string) => Promise<void>;
}

/**
 * Stores a picture under a new name (so that no cache shows the old one), points its owner's row to it, and deletes the
 * previous one.
 */
export async function replacePicture({
  bucket,
  folder,
  file,
  extension,
  before,
  pointTo,
}: PictureChange): Promise<void> {
  const supabase = await getSupabase();
  const pictures = supabase.storage.from(bucket);
  const path = `${folder}/${newKey()}${extension}`;
  const { error } = await pictures.upload(path, file, { contentType: file.type });
  if (error) throw error;
  try {
    await pointTo(path);
  } catch (error) {
    // After a lost answer the row may point to the new picture. An unused one is deleted by the next change.
    if (nothingWritten(error)) await pictures.remove([path]);
    throw error;
  }
  // also deletes remains of earlier, incomplete changes; a newer file may be another tab's upload in progress
  const { data: found } = await pictures.list(folder);
  const leftOver = (found ?? [])
    .filter(({ created_at }) => created_at !== null && Date.parse(created_at) < Date.now() - SETTLED_MS)
    .map(({ name }) => `${folder}/${name}`)
    .filter((name) => name !== path);
  const gone = new Set(before ? [before, ...leftOver] : leftOver);
  if (gone.size > 0) await pictures.remove([...gone]);
}
