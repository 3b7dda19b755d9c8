import { zodResolver } from "@hookform/resolvers/zod";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { RadioGroup, RadioLine } from "@/components/ui/radio-group";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import type { LinkedAccount } from "../answers";
import { checkAddressCode, sendAddressCode, type AccountMatch as Match } from "../api";
import { codeSchema } from "../schema";

export interface AccountMatchProps {
  email: string;
  /** The account to keep the request with; null: none. */
  onChoose: (account: LinkedAccount | null) => void;
  onLeave: () => void;
}

/**
 * Proves an address by a mailed code, then offers the accounts that use it.
 * Nobody learns whether an account exists before the code came back.
 */
export function AccountMatch({ email, onChoose, onLeave }: AccountMatchProps) {
  const [found, setFound] = useState<{ proof: string; matches: Match[] } | null>(null);
  const [selected, setSelected] = useState("");
  const form = useForm({ resolver: zodResolver(codeSchema), shouldFocusError: false, defaultValues: { code: "" } });
  const failed = (error: unknown) =>
    toast({ variant: "destructive", title: t("requestForm.matchError"), description: errorMessage(error) });
  const send = useMutation({ mutationFn: () => sendAddressCode(email), onError: failed });
  const check = useMutation({
    mutationFn: (code: string) => checkAddressCode(email, code),
    onError: failed,
    onSuccess: (answer) => {
      if (answer.ok) {
        setFound(answer);
        setSelected(answer.matches[0]?.id ?? "");
      } else {
        form.setError("code", {
          message:
            answer.reason === "wrong_code" && answer.tries_left > 0
              ? t("requestForm.codeWrong", { count: answer.tries_left })
              : t("requestForm.codeExpired"),
        });
      }
    },
  });
  const { mutate: sendCode } = send;
  useEffect(() => sendCode(), [sendCode]);

  if (found && found.matches.length === 0) {
    return (
      <section className="grid gap-6" aria-labelledby="match-title">
        <h2 id="match-title">{t("requestForm.matchTitle")}</h2>
        <Notice tone="info" role="status">
          {t("requestForm.noMatch")}
        </Notice>
        <div className="actions">
          <Button variant="primary" onClick={() => onChoose(null)}>
            {t("requestForm.matchContinue")}
          </Button>
        </div>
      </section>
    );
  }

  if (found) {
    const match = found.matches.find(({ id }) => id === selected);
    return (
      <section className="grid gap-6" aria-labelledby="match-title">
        <h2 id="match-title">{t("requestForm.matchTitle")}</h2>
        <p role="status">{t("requestForm.matchFound")}</p>
        <RadioGroup aria-label={t("requestForm.matchLegend")} value={selected} onValueChange={setSelected}>
          {found.matches.map((account) => (
            <RadioLine key={account.id} value={account.id}>
              <strong>{account.fullName || account.email}</strong>
              <span className="block text-ui text-soft">
                {account.email} · {t("requestForm.matchEmail")}
              </span>
            </RadioLine>
          ))}
        </RadioGroup>
        <div className="actions">
          <Button
            variant="primary"
            disabled={!match}
            onClick={() => match && onChoose({ id: match.id, fullName: match.fullName, email, proof: found.proof })}
          >
            {t("requestForm.useSelected")}
          </Button>
          <Button onClick={() => onChoose(null)}>{t("requestForm.createNew")}</Button>
        </div>
      </section>
    );
  }

  return (
    <section aria-labelledby="match-title">
      <h2 id="match-title">{t("requestForm.matchTitle")}</h2>
      <p className="mt-2 mb-6 text-soft" role="status">
        {t("requestForm.codeSent", { email })}
      </p>
      <Form form={form} onSubmit={({ code }) => check.mutate(code)}>
        <Field name="code" label={t("requestForm.code")} hint={t("requestForm.codeHint")}>
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
            {t("requestForm.checkCode")}
          </Button>
          <Button onClick={onLeave}>{t("requestForm.skipMatch")}</Button>
        </div>
        <p>
          <Button
            variant="quiet"
            busy={send.isPending}
            onClick={() => send.mutate(undefined, { onSuccess: () => toast({ title: t("requestForm.resent") }) })}
          >
            {t("requestForm.resend")}
          </Button>
        </p>
      </Form>
    </section>
  );
}
