/** Documents on their way: each goes up as soon as it is chosen, one after the other, and says for itself how it went. */
import { useCallback, useEffect, useRef, useState } from "react";
import { errorMessage, isWrongFileType } from "@/lib/errors";
import { removeDocument, uploadToRequest, uploadToSlot, type StoredDocument } from "@/lib/request-documents";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/files";
import type { Answers } from "./answers";
import type { Change } from "./use-answers";

export interface Pending {
  file: File;
  /** Why it did not arrive, in words; null while it waits or is on its way. */
  error: string | null;
  /** Another try would end the same way: the file itself is refused. */
  refused?: boolean;
}

export interface DocumentsState {
  pending: readonly Pending[];
  busy: boolean;
  /** A file did not arrive that may arrive when it is tried again. */
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
  /** How a file of this request is stopped, while it waits or is on its way. */
  const stops = useRef(new Map<File, AbortController>());
  /** One after the other: a slow line finishes one document rather than none. */
  const line = useRef<Promise<void>>(Promise.resolve());
  const latest = useRef({ signedIn, draftId, save });
  useEffect(() => {
    latest.current = { signedIn, draftId, save };
  });

  // These answers were sent or thrown away: what was still on its way is no document of the next request.
  const begun = useRef(key);
  useEffect(() => {
    if (begun.current === key) return;
    begun.current = key;
    for (const stop of stops.current.values()) stop.abort();
    stops.current.clear();
    setPending([]);
  }, [key]);

  const send = useCallback(
    (file: File) => {
      const stop = new AbortController();
      stops.current.set(file, stop);
      const { signal } = stop;
      const upload = async () => {
        if (signal.aborted) return;
        const { signedIn, draftId, save } = latest.current;
        try {
          const document = signedIn
            ? await uploadToRequest(draftId ?? (await save()), file, signal)
            : await uploadToSlot(key, file, signal);
          // taken out in its last moment
          if (signal.aborted) return void removeDocument(document).catch(() => undefined);
          change((now) => ({ documents: [...now.documents, document] }));
          setPending((list) => list.filter((entry) => entry.file !== file));
        } catch (error) {
          if (signal.aborted) return;
          const refused = isWrongFileType(error);
          const words = refused
            ? t("files.invalidTypeBody", { file: file.name })
            : t("requestForm.documentFailed", { reason: errorMessage(error) });
          if (refused) toast({ variant: "destructive", title: t("files.invalidType"), description: words });
          setPending((list) => list.map((entry) => (entry.file === file ? { file, error: words, refused } : entry)));
        } finally {
          if (stops.current.get(file) === stop) stops.current.delete(file);
        }
      };
      line.current = line.current.then(upload);
    },
    [key, change],
  );

  const add = useCallback(
    (files: readonly File[]) => {
      setPending((list) => [...list, ...files.map((file) => ({ file, error: null }))]);
      files.forEach(send);
    },
    [send],
  );

  const retry = useCallback(
    (file: File) => {
      setPending((list) => list.map((entry) => (entry.file === file ? { file, error: null } : entry)));
      send(file);
    },
    [send],
  );

  const drop = useCallback((file: File) => {
    stops.current.get(file)?.abort();
    setPending((list) => list.filter((entry) => entry.file !== file));
  }, []);

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
    retry,
    drop,
    remove,
  };
}
