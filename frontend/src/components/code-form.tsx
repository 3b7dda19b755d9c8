import { zodResolver } from "@hookform/resolvers/zod";
import { useMutation } from "@tanstack/react-query";
import { useForm } from "react-hook-form";
import { t } from "@/messages";
import "@/messages/en/addressCode";
import { codeSchema } from "@/schemas/code";
import { Field, Form } from "./form";
import { Button } from "./ui/button";
import { Input } from "./ui/input";

/** The database's answer to a refused code. */
export interface CodeRefused {
  ok: false;
  reason: "wrong_code" | "expired";
  tries_left: number;
}

export interface CodeFormProps<Proof extends { ok: true }> {
  /** Where the code was sent. */
  sent: string;
  check: (code: string) => Promise<Proof | CodeRefused>;
  checkLabel?: string;
  onProved: (proof: Proof) => void;
  onFailed: (error: unknown) => void;
  /** Sends another code. */
  onAgain: () => void;
  sendingAgain: boolean;
  leaveLabel: string;
  onLeave: () => void;
}

/** Asks for a mailed six-digit code, and can send another. */
export function CodeForm<Proof extends { ok: true }>(props: CodeFormProps<Proof>) {
  const form = useForm({ resolver: zodResolver(codeSchema), shouldFocusError: false, defaultValues: { code: "" } });
  const check = useMutation({
    mutationFn: props.check,
    onError: props.onFailed,
    onSuccess: (answer) => {
      if (answer.ok) return props.onProved(answer);
      form.setError("code", {
        message:
          answer.reason === "wrong_code" && answer.tries_left > 0
            ? t("addressCode.wrong", { count: answer.tries_left })
            : t("addressCode.expired"),
      });
    },
  });
  return (
    <>
      <p className="mt-2 mb-6 break-words text-soft" role="status">
        {props.sent}
      </p>
      <Form form={form} error={check.error} onSubmit={({ code }) => check.mutate(code)}>
        <Field name="code" label={t("addressCode.code")} hint={t("addressCode.hint")}>
          {(control) => (
            <Input
              {...control}
              // copied with spaces, or with the words around it
              onChange={(event) => control.onChange(event.target.value.replace(/\D/g, "").slice(0, 6))}
              inputMode="numeric"
              autoComplete="one-time-code"
              className="num max-w-40"
            />
          )}
        </Field>
        <div className="actions">
          <Button type="submit" variant="primary" busy={check.isPending}>
            {props.checkLabel ?? t("addressCode.check")}
          </Button>
          <Button onClick={props.onLeave}>{props.leaveLabel}</Button>
        </div>
        <p>
          <Button variant="quiet" className="edge" busy={props.sendingAgain} onClick={props.onAgain}>
            {t("addressCode.resend")}
          </Button>
        </p>
      </Form>
    </>
  );
}
