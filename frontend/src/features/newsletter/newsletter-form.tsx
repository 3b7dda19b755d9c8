import { zodResolver } from "@hookform/resolvers/zod";
import { useForm } from "react-hook-form";
import { z } from "zod";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { email } from "@/schemas/atoms";
import { useSubscribe } from "./api";

const schema = z.object({ email: email() });

/** One field and one button; the answer is the same for every address. */
export function NewsletterForm() {
  const subscribe = useSubscribe();
  const form = useForm({
    resolver: zodResolver(schema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { email: "" },
  });
  return (
    <section className="news" aria-labelledby="newsletter">
      <div>
        <h2 id="newsletter">{t("marketing.newsletterTitle")}</h2>
        <p className="soft small">{t("marketing.newsletterBody")}</p>
      </div>
      {subscribe.isSuccess ? (
        <Notice tone="good" role="status" title={t("marketing.newsletterSent")} className="lg:col-span-2">
          {t("marketing.newsletterSentBody")}
        </Notice>
      ) : (
        <Form
          form={form}
          error={subscribe.error}
          onSubmit={({ email: address }) => subscribe.mutate(address)}
          className="gap-4! sm:grid-cols-[minmax(0,1fr)_auto] sm:items-end lg:col-span-2 [&>.notice]:col-span-full"
        >
          <Field name="email" label={t("common.email")}>
            {(control) => <Input type="email" autoComplete="email" inputMode="email" {...control} />}
          </Field>
          <Button type="submit" busy={subscribe.isPending} busyLabel={t("marketing.subscribing")}>
            {t("marketing.subscribe")}
          </Button>
        </Form>
      )}
    </section>
  );
}
