/** Below a message to the person: insert a saved reply, or save this text as one. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { Select } from "@/components/ui/select";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/incoming";
import {
  savedRepliesQuery,
  useDeleteReply,
  useSaveReply,
  withReply,
  type ReplyKind,
  type SavedReply,
} from "../saved-replies";

const failed = (error: unknown) =>
  toast({ variant: "destructive", title: t("incoming.repliesFailed"), description: errorMessage(error) });

export interface SavedRepliesProps {
  nonprofitId: string;
  kind: ReplyKind;
  /** The message as it stands. */
  text: string;
  onText: (text: string) => void;
}

export function SavedReplies({ nonprofitId, kind, text, onText }: SavedRepliesProps) {
  const { data: replies = [] } = useQuery(savedRepliesQuery(nonprofitId, kind));
  const [chosenId, setChosenId] = useState("");
  const [asking, setAsking] = useState(false);
  const remove = useDeleteReply(nonprofitId, kind);
  const id = useId();
  const chosen = replies.find((reply) => reply.id === chosenId);
  const isNew = text.trim() !== "" && !replies.some(({ body }) => body === text.trim());

  const forget = ({ id: gone }: SavedReply) =>
    remove.mutate(gone, {
      onSuccess: () => {
        setChosenId("");
        toast({ title: t("incoming.repliesDeleted") });
      },
      onError: failed,
      onSettled: () => setAsking(false),
    });

  return (
    <div className="grid gap-3">
      {replies.length > 0 ? (
        <div className="field">
          <label className="label" htmlFor={id}>
            {t("incoming.repliesUse")}
          </label>
          <div className="flex flex-wrap gap-2">
            <Select
              id={id}
              className="min-w-0 flex-1 basis-48"
              placeholder={t("incoming.repliesNone")}
              value={chosen ? chosenId : ""}
              onChange={setChosenId}
              options={replies.map((reply) => ({ value: reply.id, label: reply.title }))}
            />
            <Button disabled={!chosen} onClick={() => chosen && onText(withReply(text, chosen.body))}>
              {t("incoming.repliesInsert")}
            </Button>
          </div>
          {chosen ? (
            <Button variant="quiet" className="edge justify-self-start" onClick={() => setAsking(true)}>
              {t("incoming.repliesDelete", { name: chosen.title })}
            </Button>
          ) : null}
        </div>
      ) : null}
      {isNew ? <KeepReply nonprofitId={nonprofitId} kind={kind} text={text} /> : null}
      {chosen ? (
        <ConfirmDialog
          open={asking}
          onOpenChange={setAsking}
          title={t("incoming.repliesDeleteTitle")}
          description={t("incoming.repliesDeleteBody", { name: chosen.title })}
          confirmLabel={t("incoming.repliesDelete", { name: chosen.title })}
          busy={remove.isPending}
          onConfirm={() => forget(chosen)}
        />
      ) : null}
    </div>
  );
}

/** Not a form, because it is inside the decision's form. */
function KeepReply({ nonprofitId, kind, text }: Omit<SavedRepliesProps, "onText">) {
  const [title, setTitle] = useState<string | null>(null);
  const [missing, setMissing] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const save = useSaveReply(nonprofitId, kind);
  const id = useId();
  const asked = title !== null;
  useEffect(() => {
    // focus the field if a press revealed it
    if (asked) field.current?.focus();
  }, [asked]);

  if (title === null) {
    return (
      <Button variant="quiet" className="edge justify-self-start" onClick={() => setTitle("")}>
        {t("incoming.repliesSave")}
      </Button>
    );
  }
  const keep = () => {
    if (title.trim() === "") {
      setMissing(true);
      field.current?.focus();
      return;
    }
    save.mutate(
      { title, body: text.trim() },
      {
        onSuccess: () => {
          toast({
            title: t("incoming.repliesSaved"),
            description: t("incoming.repliesSavedBody", { name: title.trim() }),
          });
          setTitle(null);
        },
        onError: failed,
      },
    );
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    keep();
  };
  return (
    <div className={missing ? "field bad" : "field"}>
      <label className="label" htmlFor={id}>
        {t("incoming.repliesName")}
      </label>
      <span className="hint" id={`${id}-hint`}>
        {t("incoming.repliesNameHint")}
      </span>
      {missing ? (
        <span className="error" id={`${id}-error`}>
          {t("incoming.repliesNameRequired")}
        </span>
      ) : null}
      <Input
        ref={field}
        id={id}
        maxLength={80}
        autoComplete="off"
        value={title}
        aria-invalid={missing || undefined}
        aria-describedby={missing ? `${id}-hint ${id}-error` : `${id}-hint`}
        onChange={(event) => {
          setTitle(event.target.value);
          setMissing(false);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="actions mt-2">
        <Button busy={save.isPending} busyLabel={t("incoming.repliesKeeping")} onClick={keep}>
          {t("incoming.repliesKeep")}
        </Button>
        <Button variant="quiet" onClick={() => setTitle(null)}>
          {t("incoming.repliesCancel")}
        </Button>
      </div>
    </div>
  );
}
