import { zodResolver } from "@hookform/resolvers/zod";
import type { ReactNode } from "react";
import { useForm } from "react-hook-form";
import { Form, Field } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { PasswordInput } from "@/components/ui/password-input";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import "@/messages/en/errors";
import { useLogin } from "./api";
import { loginSchema } from "./schema";

export interface LoginFormProps {
  forgotLink: ReactNode;
  login: ReturnType<typeof useLogin>;
  onDone: () => void;
}

export function LoginForm({ forgotLink, login, onDone }: LoginFormProps) {
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
        <span className="absolute top-0 right-0 z-[1] -mt-2 inline-flex min-h-11 items-center text-ui">
          {forgotLink}
        </span>
        <Field name="password" label={t("auth.password")}>
          {(control) => <PasswordInput autoComplete="current-password" {...control} />}
        </Field>
      </div>
      <Button type="submit" variant="primary" full busy={login.isPending} busyLabel={t("auth.loggingIn")}>
        {t("auth.login")}
      </Button>
    </Form>
  );
}
