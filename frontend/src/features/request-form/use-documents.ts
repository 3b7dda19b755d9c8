/** Documents on their way: each goes up as soon as it is chosen, and says for itself how it went. */
import { useCallback, useState } from "react";
import { errorMessage, isWrongFileType } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/files";
import type { Answers, StoredDocument } from "./answers";
import { removeDocument, uploadAsGuest, uploadToDraft } from "./api";
import type { Change } from "./use-answers";

export interface Pending {
  file: File;
  /** Why it did not arrive, in words; null while it is on its way. */
  error: string | null;
}

export interface DocumentsState {
  pending: readonly Pending[];
  busy: boolean;
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
}

export function useDocuments({ answers, change, signedIn, save }: UseDocuments): DocumentsState {
  const [pending, setPending] = useState<readonly Pending[]>([]);
  const { key, draftId } = answers;

  const send = useCallback(
    async (file: File) => {
      try {
        const document = signedIn
          ? await uploadToDraft(draftId ?? (await save()), file)
          : await uploadAsGuest(key, file);
        change((now) => ({ documents: [...now.documents, document] }));
        setPending((list) => list.filter((entry) => entry.file !== file));
      } catch (error) {
        if (isWrongFileType(error)) {
          // another try would end the same way
          setPending((list) => list.filter((entry) => entry.file !== file));
          toast({
            variant: "destructive",
            title: t("files.invalidType"),
            description: t("files.invalidTypeBody", { file: file.name }),
          });
          return;
        }
        const words = t("requestForm.documentFailed", { reason: errorMessage(error) });
        setPending((list) => list.map((entry) => (entry.file === file ? { file, error: words } : entry)));
      }
    },
    [signedIn, draftId, save, key, change],
  );

  const add = useCallback(
    (files: readonly File[]) => {
      setPending((list) => [...list, ...files.map((file) => ({ file, error: null }))]);
      // one after the other: a slow line finishes one document rather than none
      void files.reduce((line, file) => line.then(() => send(file)), Promise.resolve());
    },
    [send],
  );

  const retry = useCallback(
    (file: File) => {
      setPending((list) => list.map((entry) => (entry.file === file ? { file, error: null } : entry)));
      void send(file);
    },
    [send],
  );

  const drop = useCallback((file: File) => setPending((list) => list.filter((entry) => entry.file !== file)), []);

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
    failed: pending.some(({ error }) => error !== null),
    add,
    retry,
    drop,
    remove,
  };
}
