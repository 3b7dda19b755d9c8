/**
 * Uploads files one after the other, so that a slow line completes some documents rather than none. Each has its own
 * progress.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { t } from "@/messages";
import "@/messages/en/files";
import { errorMessage, isWrongFileType } from "./errors";
import { removeDocument, withdrawUpload, type Sending, type StoredDocument } from "./request-documents";
import { toast } from "./toast";

export interface Pending {
  file: File;
  /** Percent sent; null while waiting. */
  percent: number | null;
  /** Why it failed, in words; null while waiting or uploading. */
  error: string | null;
  /** A retry would fail too, because the file itself is refused. */
  refused?: boolean;
}

export interface UseUploads {
  upload: (file: File, sending: Sending) => Promise<StoredDocument>;
  onArrived: (document: StoredDocument) => void;
  /** A new value cancels running uploads, which do not belong to the next request. */
  batch: string;
}

export interface Uploads {
  pending: readonly Pending[];
  /** Lists files without sending them. */
  hold: (files: readonly File[]) => void;
  /** Sends a listed file after the earlier ones; returns whether it succeeded. */
  send: (file: File) => Promise<boolean>;
  /** Removes a file from the list and cancels its upload. */
  drop: (file: File) => void;
}

export function useUploads(given: UseUploads): Uploads {
  const [pending, setPending] = useState<readonly Pending[]>([]);
  const { batch } = given;
  const stops = useRef(new Map<File, AbortController>());
  const line = useRef<Promise<unknown>>(Promise.resolve());
  const latest = useRef(given);
  useEffect(() => {
    latest.current = given;
  });

  const begun = useRef(batch);
  useEffect(() => {
    if (begun.current === batch) return;
    begun.current = batch;
    for (const stop of stops.current.values()) stop.abort();
    stops.current.clear();
    setPending([]);
  }, [batch]);

  const put = useCallback((file: File, now: Omit<Pending, "file">) => {
    setPending((list) => list.map((entry) => (entry.file === file ? { file, ...now } : entry)));
  }, []);

  const hold = useCallback((files: readonly File[]) => {
    setPending((list) => [...list, ...files.map((file) => ({ file, percent: null, error: null }))]);
  }, []);

  const send = useCallback(
    (file: File): Promise<boolean> => {
      const stop = new AbortController();
      stops.current.set(file, stop);
      const { signal } = stop;
      put(file, { percent: null, error: null });
      const run = line.current.then(async () => {
        if (signal.aborted) return false;
        try {
          const document = await latest.current.upload(file, {
            signal,
            onProgress: (percent) => put(file, { percent, error: null }),
          });
          // removed at the last moment
          if (signal.aborted) {
            await removeDocument(document).catch(() => undefined);
            return false;
          }
          latest.current.onArrived(document);
          setPending((list) => list.filter((entry) => entry.file !== file));
          return true;
        } catch (error) {
          if (signal.aborted) return false;
          const refused = isWrongFileType(error);
          const words = refused
            ? t("files.invalidTypeBody", { file: file.name })
            : t("files.notArrived", { reason: errorMessage(error) });
          if (refused) toast({ variant: "destructive", title: t("files.invalidType"), description: words });
          put(file, { percent: null, error: words, refused });
          return false;
        } finally {
          if (stops.current.get(file) === stop) stops.current.delete(file);
        }
      });
      line.current = run;
      return run;
    },
    [put],
  );

  const drop = useCallback((file: File) => {
    stops.current.get(file)?.abort();
    void withdrawUpload(file).catch(() => undefined);
    setPending((list) => list.filter((entry) => entry.file !== file));
  }, []);

  return { pending, hold, send, drop };
}
