/** All stored data about the person as one archive: JSON and the documents. */
import { zip, type Zippable } from "fflate";
import { z } from "zod";
import { isNotFound } from "@/lib/errors";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";

const dataSchema = z.looseObject({
  files: z.array(z.object({ bucket: z.string(), path: z.string(), name: z.string() })),
});
export type MyData = z.output<typeof dataSchema>;

/** A file's bytes; null if it no longer exists. */
export type ReadFile = (bucket: string, path: string) => Promise<Uint8Array | null>;

/** Names in an archive are paths: they must not lead out of it and must be unique. */
export function archiveNames(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const safe = name
      .split("/")
      .filter((part) => part !== "" && part !== "." && part !== "..")
      .join("/");
    const dot = safe.lastIndexOf(".");
    const [stem, end] = dot > safe.lastIndexOf("/") + 1 ? [safe.slice(0, dot), safe.slice(dot)] : [safe, ""];
    let free = safe;
    for (let copy = 2; taken.has(free); copy++) free = `${stem} (${copy})${end}`;
    taken.add(free);
    return `files/${free}`;
  });
}

/** The archive: `about-you.json` and the papers, one after the other. */
export async function archiveOf(data: MyData, read: ReadFile): Promise<Uint8Array> {
  const names = archiveNames(data.files.map(({ name }) => name));
  const entries: Zippable = { "about-you.json": new TextEncoder().encode(JSON.stringify(data, null, 2)) };
  for (const [index, { bucket, path }] of data.files.entries()) {
    const bytes = await read(bucket, path);
    // documents are already compressed
    if (bytes) entries[names[index] ?? path] = [bytes, { level: 0 }];
  }
  return new Promise((done, fail) => zip(entries, (error, archive) => (error ? fail(error) : done(archive))));
}

export async function readMyData(): Promise<Uint8Array> {
  const data = await rpc("my_data", {} as never, dataSchema);
  const supabase = await getSupabase();
  return archiveOf(data, async (bucket, path) => {
    const { data: blob, error } = await supabase.storage.from(bucket).download(path);
    if (error && isNotFound(error)) return null;
    if (error) throw error;
    return new Uint8Array(await blob.arrayBuffer());
  });
}
