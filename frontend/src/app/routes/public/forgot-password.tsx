import { zodResolver } from "@hookform/resolvers/zod";
import { useState } from "react";
import { useForm } from "react-hook-form";
import { Link, useSearchParams } from "react-router-dom";
import { SentArt } from "@/components/art/sent";
import { Field, Form } from "@/components/form";
import { BackLink, FormPage } from "@/components/pages";
import { State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { useRequestReset } from "@/features/auth/api";
import { forgotSchema } from "@/features/auth/schema";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import { paths, safeNext, withNext } from "../../paths";

export function Component() {
  const [sent, setSent] = useState(false);
  const request = useRequestReset();
  const [search] = useSearchParams();
  const next = safeNext(search.get("next"));
  const form = useForm({
    resolver: zodResolver(forgotSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { email: "" },
  });

  if (sent) {
    return (
      <FormPage title={t("auth.checkYourEmail")} heading="">
        <State
          art={SentArt}
          heading="h1"
          role="status"
          title={t("auth.checkYourEmail")}
          actions={
            <>
              <Button onClick={() => setSent(false)}>{t("auth.tryAgain")}</Button>
              <Button asChild variant="quiet">
                <Link to={withNext(paths.login, next)}>{t("auth.backToLogin")}</Link>
              </Button>
            </>
          }
        >
          <p>{t("auth.checkYourEmailBody")}</p>
        </State>
      </FormPage>
    );
  }
  return (
    <FormPage
      title={t("auth.forgotTitle")}
      heading={t("auth.forgotHeading")}
      lead={t("auth.forgotLead")}
      back={<BackLink to={withNext(paths.login, next)}>{t("auth.backToLogin")}</BackLink>}
    >
      <Form
        form={form}
        error={navigator.onLine ? null : request.error}
        onSubmit={({ email }) =>
          request.mutate(
            { email, landing: withNext(paths.resetPassword, next) },
            {
              onSuccess: () => {
                toast({ title: t("auth.resetEmailSent") });
                setSent(true);
              },
              onError: () => {
                // Neutral on purpose: a refusal must not reveal whether the account exists. Being offline is not a
                // refusal.
                if (!navigator.onLine) return;
                toast({ title: t("auth.instructionsSent"), description: t("auth.checkYourEmailBody") });
                setSent(true);
              },
            },
          )
        }
      >
        <Field name="email" label={t("auth.email")}>
          {(control) => <Input type="email" autoComplete="email" inputMode="email" {...control} />}
        </Field>
        <Button type="submit" variant="primary" full busy={request.isPending} busyLabel={t("common.sending")}>
          {t("auth.forgotSubmit")}
        </Button>
      </Form>
    </FormPage>
  );
}
