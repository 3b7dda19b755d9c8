import { zodResolver } from "@hookform/resolvers/zod";
import { useMutation } from "@tanstack/react-query";
import { useEffect } from "react";
import { useForm } from "react-hook-form";
import { checkAddressCode, sendAddressCode, type CodeCheck } from "@/lib/address-code";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/addressCode";
import { codeSchema } from "@/schemas/code";
import { Field, Form } from "./form";
import { Button } from "./ui/button";
import { Input } from "./ui/input";

export interface AddressCodeFormProps {
  email: string;
  /** Title of the toast when a code cannot be sent or checked. */
  failedTitle: string;
  onProved: (answer: Extract<CodeCheck, { ok: true }>) => void;
  leaveLabel: string;
  onLeave: () => void;
}

/** Mails a code to an address when it appears, takes the code back, and sends another if it does not come. */
export function AddressCodeForm({ email, failedTitle, onProved, leaveLabel, onLeave }: AddressCodeFormProps) {
  const form = useForm({ resolver: zodResolver(codeSchema), shouldFocusError: false, defaultValues: { code: "" } });
  const failed = (error: unknown) =>
    toast({ variant: "destructive", title: failedTitle, description: errorMessage(error) });
  const send = useMutation({ mutationFn: () => sendAddressCode(email), onError: failed });
  const check = useMutation({
    mutationFn: (code: string) => checkAddressCode(email, code),
    onError: failed,
    onSuccess: (answer) => {
      if (answer.ok) return onProved(answer);
      form.setError("code", {
        message:
          answer.reason === "wrong_code" && answer.tries_left > 0
            ? t("addressCode.wrong", { count: answer.tries_left })
            : t("addressCode.expired"),
      });
    },
  });
  const { mutate: sendCode } = send;
  useEffect(() => sendCode(), [sendCode]);
  return (
    <>
      <p className="mt-2 mb-6 break-words text-soft" role="status">
        {t("addressCode.sent", { email })}
      </p>
      <Form form={form} onSubmit={({ code }) => check.mutate(code)}>
        <Field name="code" label={t("addressCode.code")} hint={t("addressCode.hint")}>
          {(control) => (
            <Input
              {...control}
              inputMode="numeric"
              autoComplete="one-time-code"
              maxLength={6}
              className="num max-w-40"
            />
          )}
        </Field>
        <div className="actions">
          <Button type="submit" variant="primary" busy={check.isPending}>
            {t("addressCode.check")}
          </Button>
          <Button onClick={onLeave}>{leaveLabel}</Button>
        </div>
        <p>
          <Button
            variant="quiet"
            className="edge"
            busy={send.isPending}
            onClick={() => send.mutate(undefined, { onSuccess: () => toast({ title: t("addressCode.resent") }) })}
          >
            {t("addressCode.resend")}
          </Button>
        </p>
      </Form>
    </>
  );
}
