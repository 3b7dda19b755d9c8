import { zodResolver } from "@hookform/resolvers/zod";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { DialogAnswers, DialogContent } from "@/components/ui/dialog";
import { Textarea } from "@/components/ui/input";
import { formatDate } from "@/lib/format";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { toast } from "@/lib/toast";
import { useSendKey } from "@/lib/use-send-key";
import { t } from "@/messages";
import "@/messages/en/donations";
import { useReply, type DonorMessage } from "../api";
import { replySchema, type ReplyForm } from "../schema";

export interface MessageDialogProps {
  message: DonorMessage;
  userId: string;
  onClose: () => void;
}

/** A nonprofit's message, and the donor's answer to it. */
export function MessageDialog({ message, userId, onClose }: MessageDialogProps) {
  const keptAs = `reply-${message.id}-${userId}`;
  const form = useForm<ReplyForm>({
    resolver: zodResolver(replySchema),
    shouldFocusError: false,
    defaultValues: readKept(keptAs, { message: "" }),
  });
  const forget = useKeptForm(form, keptAs);
  const reply = useReply(userId);
  const { take, refused } = useSendKey(keptAs);
  return (
    <DialogContent
      title={message.subject}
      description={`${t("donations.from", { name: message.nonprofit_name })}, ${formatDate(message.date)}`}
      dirty={form.formState.isDirty}
    >
      <p className="mb-5 whitespace-pre-line wrap-anywhere">{message.message}</p>
      {message.replies.length > 0 ? (
        <ul className="list ruled mb-5">
          {message.replies.map((answer) => (
            <li key={answer.date} className="py-3">
              <p className="text-sm text-soft">{t("donations.youAnswered", { date: formatDate(answer.date) })}</p>
              <p className="whitespace-pre-line wrap-anywhere">{answer.message}</p>
            </li>
          ))}
        </ul>
      ) : null}
      <Form
        form={form}
        error={reply.error}
        errorTitle={t("donations.replyFailed")}
        onSubmit={async (values) => {
          await reply.mutateAsync({ messageId: message.id, message: values.message, key: take() }).then(() => {
            forget();
            toast({
              title: t("donations.replySent"),
              description: t("donations.replySentBody", { name: message.nonprofit_name }),
            });
            onClose();
          }, refused);
        }}
      >
        <Field<ReplyForm> name="message" label={t("donations.reply")}>
          {(control) => <Textarea className="min-h-24" {...control} />}
        </Field>
        <DialogAnswers
          submit={t("donations.sendReply")}
          busy={reply.isPending}
          busyLabel={t("donations.sendingReply")}
          cancel={t("common.close")}
        />
      </Form>
    </DialogContent>
  );
}
