import { zodResolver } from "@hookform/resolvers/zod";
import type { ReactNode } from "react";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { PasswordInput } from "@/components/ui/password-input";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import { useSignup, type SignupRole } from "./api";
import { signupSchema } from "./schema";

export interface SignupFormProps {
  accountRole: SignupRole;
  /** Path behind the confirmation mail's link. */
  landing: string;
  /** The success toast's description. */
  doneBody: string;
  /** 'By signing up you agree …' with its links. */
  terms: ReactNode;
  onDone: (result: { signedIn: boolean; email: string }) => void;
}

export function SignupForm({ accountRole, landing, doneBody, terms, onDone }: SignupFormProps) {
  const signup = useSignup();
  const form = useForm({
    resolver: zodResolver(signupSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { fullName: "", email: "", password: "", confirmPassword: "" },
  });
  return (
    <Form
      form={form}
      error={signup.error}
      errorTitle={t("auth.signupFailed")}
      onSubmit={(values) =>
        signup.mutate(
          { form: values, role: accountRole, landing },
          {
            onSuccess: ({ signedIn }) => {
              if (signedIn) toast({ title: t("auth.signupDone"), description: doneBody });
              onDone({ signedIn, email: values.email });
            },
            onError: (error) =>
              toast({
                variant: "destructive",
                title: t("auth.signupFailed"),
                description: errorMessage(error, "auth.signupFailedBody"),
              }),
          },
        )
      }
    >
      <Field name="fullName" label={t("auth.fullName")}>
        {(control) => <Input autoComplete="name" {...control} />}
      </Field>
      <Field
        name="email"
        label={t("auth.email")}
        hint={t(accountRole === "nonprofit" ? "auth.emailHintNonprofit" : "auth.emailHint")}
      >
        {(control) => <Input type="email" autoComplete="email" inputMode="email" {...control} />}
      </Field>
      <Field name="password" label={t("auth.password")} hint={t("auth.passwordHint")}>
        {(control) => <PasswordInput autoComplete="new-password" {...control} />}
      </Field>
      <Field name="confirmPassword" label={t("auth.confirmPassword")}>
        {(control) => <PasswordInput autoComplete="new-password" {...control} />}
      </Field>
      <div className="grid gap-4">
        <Button type="submit" variant="primary" full busy={signup.isPending} busyLabel={t("auth.signingUp")}>
          {t("auth.signUp")}
        </Button>
        <p className="small soft">{terms}</p>
      </div>
    </Form>
  );
}
