import { RotateCw } from "lucide-react";
import { FileUpload } from "@/components/file-upload";
import { Button } from "@/components/ui/button";
import { REQUEST_FILE_RULES } from "@/lib/files";
import { t } from "@/messages";
import "@/messages/en/files";
import "@/messages/en/requestForm";
import type { StoredDocument } from "@/lib/request-documents";
import { progressOf } from "@/components/upload-progress";
import type { DocumentsState } from "../use-documents";

/** The request's documents: stored ones, uploads, and the file selection. */
export function DocumentsField({
  stored,
  documents,
}: {
  stored: readonly StoredDocument[];
  documents: DocumentsState;
}) {
  const { pending, add, retry, drop, remove } = documents;
  const failed = pending.filter(({ error, refused }) => error !== null && !refused);
  return (
    <div>
      <FileUpload
        rules={REQUEST_FILE_RULES}
        label={t("requestForm.documents")}
        hint={t("requestForm.documentsHint", {
          limits: t("files.limits", {
            types: REQUEST_FILE_RULES.names,
            size: REQUEST_FILE_RULES.maxBytes / 1024 / 1024,
            count: REQUEST_FILE_RULES.maxFiles,
          }),
        })}
        stored={stored}
        onRemoveStored={(id) => {
          const document = stored.find((entry) => entry.id === id);
          if (document) void remove(document);
        }}
        files={pending.map(({ file }) => file)}
        progress={(file) => {
          return progressOf(pending.find((entry) => entry.file === file));
        }}
        onChange={(files) => {
          const known = pending.map(({ file }) => file);
          for (const gone of known.filter((file) => !files.includes(file))) drop(gone);
          const added = files.filter((file) => !known.includes(file));
          if (added.length > 0) add(added);
        }}
      />
      {failed.length > 0 ? (
        <Button className="mt-3" onClick={() => failed.forEach(({ file }) => retry(file))}>
          <RotateCw aria-hidden="true" />
          {t("requestForm.documentRetry")}
        </Button>
      ) : null}
    </div>
  );
}
