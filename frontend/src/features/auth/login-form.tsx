import { zodResolver } from "@hookform/resolvers/zod";
import type { ReactNode } from "react";
import { useForm } from "react-hook-form";
import { Form, Field } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { PasswordInput } from "@/components/ui/password-input";
import { errorMessage, isUnconfirmed } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import "@/messages/en/errors";
import { useLogin, useResendConfirmation } from "./api";
import { loginSchema } from "./schema";

export interface LoginFormProps {
  forgotLink: ReactNode;
  login: ReturnType<typeof useLogin>;
  /** Path that a confirmation mail's link leads to. */
  landing: string;
  onDone: () => void;
}

/** For an unconfirmed address: sends the confirmation mail again. */
function ResendConfirmation({ email, landing }: { email: string; landing: string }) {
  const resend = useResendConfirmation();
  return (
    <Button
      full
      busy={resend.isPending}
      busyLabel={t("common.sending")}
      onClick={() =>
        resend.mutate(
          { email, landing },
          {
            onSuccess: () => toast({ title: t("auth.resent"), description: t("auth.resentBody", { email }) }),
            onError: (error) =>
              toast({ variant: "destructive", title: t("errors.title"), description: errorMessage(error) }),
          },
        )
      }
    >
      {t("auth.resendConfirmation")}
    </Button>
  );
}

export function LoginForm({ forgotLink, login, landing, onDone }: LoginFormProps) {
  const form = useForm({
    resolver: zodResolver(loginSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { email: "", password: "" },
  });
  return (
    <Form
      form={form}
      error={login.error}
      errorTitle={t("auth.alertTitle")}
      errorFallback="errors.authFallback"
      onSubmit={(values) =>
        login.mutate(values, {
          onSuccess: () => {
            toast({ title: t("auth.loggedIn") });
            onDone();
          },
          onError: (error) =>
            toast({
              variant: "destructive",
              title: t("auth.loginFailed"),
              description: errorMessage(error, "auth.loginFailedBody"),
            }),
        })
      }
    >
      <Field name="email" label={t("auth.email")}>
        {(control) => <Input type="email" autoComplete="username" inputMode="email" {...control} />}
      </Field>
      <div className="relative">
        <span className="absolute top-0 right-0 z-[1] -mt-2 text-ui [&_a]:inline-flex [&_a]:min-h-11 [&_a]:items-center">
          {forgotLink}
        </span>
        <Field name="password" label={t("auth.password")}>
          {(control) => <PasswordInput autoComplete="current-password" {...control} />}
        </Field>
      </div>
      <Button type="submit" variant="primary" full busy={login.isPending} busyLabel={t("auth.loggingIn")}>
        {t("auth.login")}
      </Button>
      {login.variables && isUnconfirmed(login.error) ? (
        <ResendConfirmation email={login.variables.email} landing={landing} />
      ) : null}
    </Form>
  );
}
