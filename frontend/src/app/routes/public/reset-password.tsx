import { zodResolver } from "@hookform/resolvers/zod";
import { useEffect, useRef, useState } from "react";
import { useForm } from "react-hook-form";
import { Link, useSearchParams } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { LoadingArt } from "@/components/art/loading";
import { SentArt } from "@/components/art/sent";
import { Field, Form } from "@/components/form";
import { FormPage } from "@/components/pages";
import { State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { PasswordInput } from "@/components/ui/password-input";
import { openRecoveryLink, useResetPassword } from "@/features/auth/api";
import { readRecoveryLink } from "@/features/auth/recovery-link";
import { resetSchema } from "@/features/auth/schema";
import { errorMessage } from "@/lib/errors";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import { paths, safeNext, withNext } from "../../paths";

type Phase = "validating" | "invalid" | "form" | "done";

function NewPasswordForm({ onDone }: { onDone: () => void }) {
  const reset = useResetPassword();
  const form = useForm({
    resolver: zodResolver(resetSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { password: "", confirmPassword: "" },
  });
  return (
    <Form
      form={form}
      error={reset.error}
      errorTitle={t("auth.resetFailed")}
      onSubmit={({ password }) =>
        reset.mutate(password, {
          onSuccess: () => {
            toast({ title: t("auth.resetDone") });
            onDone();
          },
          onError: (error) =>
            toast({
              variant: "destructive",
              title: t("auth.resetFailed"),
              description: errorMessage(error, "auth.resetFailedBody"),
            }),
        })
      }
    >
      <Field name="password" label={t("auth.newPassword")} hint={t("auth.passwordHint")}>
        {(control) => <PasswordInput autoComplete="new-password" {...control} />}
      </Field>
      <Field name="confirmPassword" label={t("auth.confirmNewPassword")}>
        {(control) => <PasswordInput autoComplete="new-password" {...control} />}
      </Field>
      <Button type="submit" variant="primary" full busy={reset.isPending} busyLabel={t("auth.resetSubmitting")}>
        {t("auth.resetSubmit")}
      </Button>
    </Form>
  );
}

export function Component() {
  const { signOut } = useSession();
  const [search] = useSearchParams();
  const next = safeNext(search.get("next"));
  const [link] = useState(() => readRecoveryLink(window.location));
  const [phase, setPhase] = useState<Phase>("validating");
  const started = useRef(false);

  useEffect(() => {
    if (started.current) return;
    started.current = true;
    // The tokens leave the address bar and the history at once.
    if (link.kind !== "invalid")
      window.history.replaceState(window.history.state, "", withNext(paths.resetPassword, next));
    openRecoveryLink(link).then(
      () => setPhase("form"),
      () => {
        toast({ variant: "destructive", title: t("auth.invalidLinkToast"), description: t("auth.invalidLink") });
        setPhase("invalid");
      },
    );
  }, [link, next]);

  switch (phase) {
    case "validating":
      return (
        <FormPage title={t("auth.resetTitle")} heading="">
          <State art={LoadingArt} role="status" heading="h1" title={t("auth.resetValidating")} />
        </FormPage>
      );
    case "invalid":
      return (
        <FormPage title={t("auth.invalidLinkHeading")} heading="">
          <State
            art={GapArt}
            heading="h1"
            title={t("auth.invalidLinkHeading")}
            actions={
              <>
                <Button asChild variant="primary">
                  <Link to={withNext(paths.forgotPassword, next)}>{t("auth.requestNewLink")}</Link>
                </Button>
                <Button asChild variant="quiet">
                  <Link to={withNext(paths.login, next)}>{t("auth.backToLogin")}</Link>
                </Button>
              </>
            }
          >
            <p>{t("auth.invalidLink")}</p>
          </State>
        </FormPage>
      );
    case "form":
      return (
        <FormPage title={t("auth.resetTitle")} heading={t("auth.resetHeading")}>
          <NewPasswordForm
            onDone={() => {
              setPhase("done");
              // The recovery session is no longer needed; the new password signs in from now on.
              void signOut().catch(() => undefined);
            }}
          />
        </FormPage>
      );
    case "done":
      return (
        <FormPage title={t("auth.resetDoneHeading")} heading="">
          <State
            art={SentArt}
            heading="h1"
            role="status"
            title={t("auth.resetDoneHeading")}
            actions={
              <Button asChild variant="primary">
                <Link to={withNext(paths.login, next)}>{t("auth.goToLogin")}</Link>
              </Button>
            }
          >
            <p>{t("auth.resetDoneBody")}</p>
          </State>
        </FormPage>
      );
  }
}
