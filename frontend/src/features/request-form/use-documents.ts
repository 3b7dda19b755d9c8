/** Uploads documents as soon as they are chosen. */
import { useCallback } from "react";
import { errorMessage, isRefused } from "@/lib/errors";
import { removeDocument, uploadToRequest, uploadToSlot, type StoredDocument } from "@/lib/request-documents";
import { toast } from "@/lib/toast";
import { useUploads, type Pending } from "@/lib/use-uploads";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import type { Answers } from "./answers";
import type { Change } from "./use-answers";

export interface DocumentsState {
  pending: readonly Pending[];
  busy: boolean;
  /** A file failed that may succeed on a retry. */
  failed: boolean;
  add: (files: readonly File[]) => void;
  retry: (file: File) => void;
  drop: (file: File) => void;
  remove: (document: StoredDocument) => Promise<void>;
}

export interface UseDocuments {
  answers: Answers;
  change: Change;
  signedIn: boolean;
  /** The draft's id; saves the draft first when there is none. */
  save: () => Promise<string>;
  /** Called when files are chosen, before they arrive. */
  onAdd: () => void;
}

export function useDocuments({ answers, change, signedIn, save, onAdd }: UseDocuments): DocumentsState {
  const { key, draftId } = answers;
  const { pending, hold, send, drop } = useUploads({
    batch: key,
    upload: async (file, sending) => {
      if (!signedIn) return uploadToSlot(key, file, sending);
      if (draftId === null) return uploadToRequest(await save(), file, sending);
      try {
        return await uploadToRequest(draftId, file, sending);
      } catch (error) {
        if (!isRefused(error)) throw error;
        // a draft that was deleted elsewhere takes no files; saving makes a new one
        return uploadToRequest(await save(), file, sending);
      }
    },
    onArrived: (document) => change((now) => ({ documents: [...now.documents, document] })),
  });

  const add = useCallback(
    (files: readonly File[]) => {
      onAdd();
      hold(files);
      for (const file of files) void send(file);
    },
    [onAdd, hold, send],
  );

  const remove = useCallback(
    async (document: StoredDocument) => {
      try {
        await removeDocument(document);
        change((now) => ({ documents: now.documents.filter(({ id }) => id !== document.id) }));
      } catch (error) {
        toast({ variant: "destructive", title: t("requestForm.removeFailed"), description: errorMessage(error) });
      }
    },
    [change],
  );

  return {
    pending,
    busy: pending.some(({ error }) => error === null),
    failed: pending.some(({ error, refused }) => error !== null && !refused),
    add,
    retry: (file) => void send(file),
    drop,
    remove,
  };
}
