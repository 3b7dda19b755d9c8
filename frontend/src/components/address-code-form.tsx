import { useMutation } from "@tanstack/react-query";
import { useEffect } from "react";
import { checkAddressCode, sendAddressCode, type CodeCheck } from "@/lib/address-code";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/addressCode";
import { CodeForm } from "./code-form";

export interface AddressCodeFormProps {
  email: string;
  /** Title of the toast when a code cannot be sent or checked. */
  failedTitle: string;
  onProved: (answer: Extract<CodeCheck, { ok: true }>) => void;
  leaveLabel: string;
  onLeave: () => void;
}

/** Mails a code to an address when shown, and checks the entered code. */
export function AddressCodeForm({ email, failedTitle, ...rest }: AddressCodeFormProps) {
  const failed = (error: unknown) =>
    toast({ variant: "destructive", title: failedTitle, description: errorMessage(error) });
  const send = useMutation({ mutationFn: () => sendAddressCode(email), onError: failed });
  const { mutate: sendCode } = send;
  useEffect(() => sendCode(), [sendCode]);
  return (
    <CodeForm
      sent={t("addressCode.sent", { email })}
      check={(code) => checkAddressCode(email, code)}
      onFailed={failed}
      onAgain={() => send.mutate(undefined, { onSuccess: () => toast({ title: t("addressCode.resent") }) })}
      sendingAgain={send.isPending}
      {...rest}
    />
  );
}
