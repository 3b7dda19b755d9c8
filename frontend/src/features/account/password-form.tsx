import { zodResolver } from "@hookform/resolvers/zod";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { PasswordInput } from "@/components/ui/password-input";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { useChangePassword, WrongCurrentPassword } from "./api";
import { passwordSchema } from "./schema";

const empty = { currentPassword: "", newPassword: "", confirmPassword: "" };

export function PasswordForm({ email }: { email: string }) {
  const change = useChangePassword(email);
  const form = useForm({
    resolver: zodResolver(passwordSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: empty,
  });
  return (
    <Form
      form={form}
      error={change.error instanceof WrongCurrentPassword ? null : change.error}
      errorTitle={t("account.passwordFailed")}
      onSubmit={(values) =>
        change.mutate(values, {
          onSuccess: () => {
            form.reset(empty);
            toast({ title: t("account.passwordChanged"), description: t("account.passwordChangedBody") });
          },
          onError: (error) => {
            const wrong = error instanceof WrongCurrentPassword;
            if (wrong) {
              form.setError("currentPassword", { message: t("account.currentPasswordWrong") }, { shouldFocus: true });
            }
            toast({
              variant: "destructive",
              title: t("account.passwordFailed"),
              description: wrong ? t("account.currentPasswordWrong") : errorMessage(error),
            });
          },
        })
      }
    >
      <Field name="currentPassword" label={t("account.currentPassword")}>
        {(control) => <PasswordInput autoComplete="current-password" {...control} />}
      </Field>
      <Field name="newPassword" label={t("account.newPassword")} hint={t("account.newPasswordHint")}>
        {(control) => <PasswordInput autoComplete="new-password" {...control} />}
      </Field>
      <Field name="confirmPassword" label={t("account.confirmNewPassword")}>
        {(control) => <PasswordInput autoComplete="new-password" {...control} />}
      </Field>
      <div className="actions">
        <Button type="submit" variant="primary" busy={change.isPending} busyLabel={t("account.changingPassword")}>
          {t("account.changePassword")}
        </Button>
      </div>
    </Form>
  );
}
