import { zodResolver } from "@hookform/resolvers/zod";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { z } from "zod";
import { FileUpload } from "@/components/file-upload";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Textarea } from "@/components/ui/input";
import { progressOf } from "@/components/upload-progress";
import { errorMessage, isAccessEnded } from "@/lib/errors";
import { ADDITIONAL_FILE_RULES } from "@/lib/files";
import { reads } from "@/lib/query-keys";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import "@/messages/en/files";
import { uploadToRequest, uploadToSlot, type StoredDocument } from "@/lib/request-documents";
import { useUploads } from "@/lib/use-uploads";
import { answerInfo, type GuestAccess, type RequestDetail } from "../api";

const schema = z.object({ message: z.string().max(5000, t("myRequests.messageTooLong")) });

/** 'Needs More Proof': the nonprofit's question, up to ten documents, and a text answer. */
export function ProofPanel({ detail, guest }: { detail: RequestDetail; guest?: GuestAccess }) {
  const { request, documents, timeline, nonprofits } = detail;
  const queryClient = useQueryClient();
  const { user } = useSession();
  const keptAs = `answer-${request.id}-${user?.id ?? "guest"}`;
  /** A guest's uploaded documents, named in the answer. */
  const [slots, setSlots] = useState<readonly StoredDocument[]>([]);
  const arrivedSlots = useRef<readonly StoredDocument[]>(slots);
  const {
    pending,
    hold,
    send: sendFile,
    drop,
  } = useUploads({
    batch: request.id,
    upload: (file, sending) =>
      guest ? uploadToSlot(guest.uploadKey, file, sending) : uploadToRequest(request.id, file, sending),
    onArrived: (document) => {
      if (!document.slot) return; // in the request's own list
      arrivedSlots.current = [...arrivedSlots.current, document];
      setSlots(arrivedSlots.current);
    },
  });
  const files = pending.map(({ file }) => file);
  const form = useForm({
    resolver: zodResolver(schema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept(keptAs, { message: "" }),
  });
  const forget = useKeptForm(form, keptAs);

  const asked = timeline.findLast((event) => event.type === "info_requested");
  const words = request.pending_notes ?? "";
  /** Ticked items, a line each, before the nonprofit's own words. */
  const items = /^(?:– .*\n?)+/.exec(words)?.[0].trim().split("\n") ?? [];
  const notes = words.split("\n").slice(items.length).join("\n").trim();
  const arrived = documents.filter((d) => d.kind === "additional" && (!asked || d.created_at > asked.created_at));
  const nonprofit =
    asked?.nonprofit_name ?? nonprofits.find(({ id }) => id === request.claimed_by)?.name ?? t("myRequests.aNonprofit");

  const send = useMutation({
    mutationFn: async (message: string) => {
      const all = await Promise.all(files.map(sendFile));
      if (all.includes(false)) return null; // each says at its name why; what arrived stays
      return guest
        ? answerInfo(
            request.id,
            message,
            guest.access,
            arrivedSlots.current.map(({ id }) => id),
          )
        : answerInfo(request.id, message);
    },
    onSuccess: (count) => {
      if (count === null) {
        toast({ variant: "destructive", title: t("files.uploadFailed") });
        return;
      }
      forget();
      toast(
        count > 0
          ? { title: t("files.uploaded"), description: t("files.uploadedBody", { count }) }
          : { title: t("myRequests.answerSent"), description: t("myRequests.answerSentBody") },
      );
    },
    onError: (error) => {
      if (isAccessEnded(error)) guest?.onEnded();
      toast({ variant: "destructive", title: t("myRequests.answerFailed"), description: errorMessage(error) });
    },
    onSettled: () =>
      Promise.all([
        queryClient.invalidateQueries({ queryKey: reads.myRequests }),
        queryClient.invalidateQueries({ queryKey: reads.notifications }),
      ]),
  });
  const anyFile = files.length + slots.length + arrived.length > 0;
  return (
    <section className="panel" aria-labelledby="need">
      <header>
        <h2 id="need">{t("myRequests.proofTitle")}</h2>
      </header>
      <div className="in grid gap-5">
        {items.length > 0 ? (
          <div className="grid gap-3 break-words">
            <p id="asked-for">{t("myRequests.proofList", { nonprofit })}</p>
            <ul className="grid list-disc gap-1 ps-5" aria-labelledby="asked-for">
              {items.map((item) => (
                <li key={item}>{item.slice(2)}</li>
              ))}
            </ul>
            {notes ? <p className="whitespace-pre-line">{notes}</p> : null}
          </div>
        ) : (
          <p className="break-words whitespace-pre-line">{t("myRequests.proofQuote", { nonprofit, notes })}</p>
        )}
        <Form
          form={form}
          className="no-print"
          onSubmit={({ message }) => {
            if (!anyFile && message.trim() === "") {
              toast({
                variant: "destructive",
                title: t("files.noneSelected"),
                description: t("files.noneSelectedBody"),
              });
              return;
            }
            send.mutate(message);
          }}
        >
          <FileUpload
            label={t("myRequests.additional")}
            rules={ADDITIONAL_FILE_RULES}
            stored={[...arrived.map(({ id, name, size_bytes }) => ({ id, name, size: size_bytes })), ...slots]}
            files={files}
            onChange={(now) => {
              for (const gone of files.filter((file) => !now.includes(file))) drop(gone);
              hold(now.filter((file) => !files.includes(file)));
            }}
            disabled={send.isPending}
            progress={(file) => {
              const entry = pending.find((other) => other.file === file);
              return send.isPending || entry?.error ? progressOf(entry) : undefined;
            }}
          />
          <Field name="message" label={t("myRequests.message")} optional hint={t("myRequests.messageHint")}>
            {(control) => <Textarea {...control} rows={3} maxLength={5000} />}
          </Field>
          <div className="actions">
            <Button type="submit" variant="primary" busy={send.isPending} busyLabel={t("myRequests.sendingDocuments")}>
              {t(anyFile ? "myRequests.sendDocuments" : "myRequests.sendAnswer")}
            </Button>
          </div>
        </Form>
      </div>
    </section>
  );
}
