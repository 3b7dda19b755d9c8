import { zodResolver } from "@hookform/resolvers/zod";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input, Textarea } from "@/components/ui/input";
import { fieldErrors } from "@/lib/errors";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { toast } from "@/lib/toast";
import { useSendKey } from "@/lib/use-send-key";
import { t } from "@/messages";
import "@/messages/en/donorMessages";
import { useSendDonorMessage } from "../api";
import { donorMessageSchema, type DonorMessageForm as Values } from "../schema";

const blank: Values = { subject: "", message: "" };

/** A message to all active donors. */
export function ComposeForm({
  nonprofitId,
  userId,
  onSent,
}: {
  nonprofitId: string;
  userId: string;
  onSent: () => void;
}) {
  const kept = `donor-message:${nonprofitId}:${userId}`;
  const form = useForm<Values>({
    resolver: zodResolver(donorMessageSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept(kept, blank),
  });
  const forget = useKeptForm(form, kept);
  const { take, renew, refused } = useSendKey(kept);
  const send = useSendDonorMessage(nonprofitId);
  const submit = async (values: Values) => {
    try {
      const { recipients } = await send.mutateAsync({ form: values, key: take() });
      form.reset(blank);
      forget();
      renew();
      toast({
        title: t("donorMessages.sentToast"),
        description:
          recipients === 0 ? t("donorMessages.sentToastNone") : t("donorMessages.sentToastBody", { count: recipients }),
      });
      onSent();
    } catch (error) {
      refused(error);
      for (const [name, message] of Object.entries(fieldErrors(error))) {
        if (name === "subject" || name === "message") form.setError(name, { message });
      }
    }
  };
  return (
    <Form
      form={form}
      onSubmit={submit}
      error={send.error}
      errorTitle={t("donorMessages.failedTitle")}
      className="max-w-2xl"
    >
      <Field<Values> name="subject" label={t("donorMessages.subject")}>
        {(control) => <Input autoComplete="off" {...control} />}
      </Field>
      <Field<Values> name="message" label={t("donorMessages.message")} hint={t("donorMessages.messageHint")}>
        {(control) => <Textarea className="min-h-56" {...control} />}
      </Field>
      <div className="grid gap-3">
        <Button
          type="submit"
          variant="primary"
          busy={send.isPending}
          busyLabel={t("donorMessages.sending")}
          className="sm:justify-self-start"
        >
          {t("donorMessages.send")}
        </Button>
        <p className="text-sm text-soft">{t("donorMessages.whoGets")}</p>
      </div>
    </Form>
  );
}
