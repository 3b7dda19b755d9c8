import { formatMegabytes } from "@/lib/format";
import type { Pending } from "@/lib/use-uploads";
import { t } from "@/messages";
import "@/messages/en/files";
import type { FileProgress } from "./file-upload";

/** How the list shows a file that is being sent. */
export function progressOf(entry: Pending | undefined): FileProgress | undefined {
  if (!entry) return undefined;
  if (entry.error !== null) return { error: entry.error };
  if (entry.percent !== null) return { percent: entry.percent };
  return { note: t("files.sending", { size: formatMegabytes(entry.file.size) }) };
}
