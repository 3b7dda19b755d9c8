import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { Lock } from "lucide-react";
import { parseAsString, useQueryState } from "nuqs";
import { useForm } from "react-hook-form";
import { Link } from "react-router-dom";
import { z } from "zod";
import { loginThen, paths } from "@/app/paths";
import { ExitPage } from "@/components/exit-page";
import { Field, Form } from "@/components/form";
import { FormPage } from "@/components/pages";
import { FailedState, ListSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { Words } from "@/components/words";
import { normalizeNumber } from "@/lib/request-number";
import { useSession } from "@/lib/session";
import { pushing } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/lookup";
import "@/styles/requests.css";
import { text } from "@/schemas/atoms";
import { statusQuery } from "../api";
import { ResultCard } from "./result-card";

const schema = z.object({ requestId: text(3, t("lookup.required")) });

/** /request-status: shows a request's status to anyone with its number, which is in the URL (`?id=`). */
export function LookupScreen() {
  const { user } = useSession();
  const [id, setId] = useQueryState("id", parseAsString.withDefault("").withOptions(pushing));
  const number = normalizeNumber(id);
  const valid = number.length >= 3;
  const query = useQuery({ ...statusQuery(number), enabled: valid });
  const form = useForm({
    resolver: zodResolver(schema),
    mode: "onSubmit",
    shouldFocusError: false,
    defaultValues: { requestId: number },
  });
  return (
    <FormPage title={t("lookup.title")} lead={t("lookup.lead")} aside={<ExitPage />}>
      <Form
        form={form}
        className="look"
        role="search"
        onSubmit={({ requestId }) => {
          const next = normalizeNumber(requestId);
          if (next === number) void query.refetch();
          else void setId(next);
        }}
      >
        <Field name="requestId" label={t("lookup.requestId")} hint={t("lookup.requestIdHint")}>
          {(control) => (
            <Input
              {...control}
              className="num"
              autoCapitalize="characters"
              autoComplete="off"
              spellCheck={false}
              maxLength={40}
            />
          )}
        </Field>
        <Button type="submit" variant="primary" busy={valid && query.isFetching} busyLabel={t("lookup.checking")}>
          {t("lookup.check")}
        </Button>
      </Form>
      <div aria-live="polite">
        {!valid ? null : query.isPending ? (
          <div className="mt-8">
            <ListSkeleton rows={2} label={t("lookup.loading")} />
          </div>
        ) : query.isError ? (
          <FailedState error={query.error} title={t("lookup.failedTitle")} onRetry={() => void query.refetch()} />
        ) : query.data === null ? (
          <Notice tone="warn" role="alert" className="mt-8" title={t("lookup.notFoundTitle")}>
            {t("lookup.notFoundBody")}
          </Notice>
        ) : query.data ? (
          <ResultCard
            found={query.data}
            foot={
              user ? (
                <>
                  <Lock aria-hidden="true" className="mt-1 shrink-0" />
                  <Link to={paths.request(query.data.request_number)}>{t("lookup.wholeRequest")}</Link>
                </>
              ) : (
                <span className="grid gap-3">
                  <Button
                    asChild
                    variant={query.data.needs_more_proof ? "primary" : "plain"}
                    className="justify-self-start"
                  >
                    <Link to={paths.openRequestOf(query.data.request_number)}>
                      {t(query.data.needs_more_proof ? "lookup.answer" : "lookup.openByCode")}
                    </Link>
                  </Button>
                  <span className="flex gap-2">
                    <Lock aria-hidden="true" className="mt-1 shrink-0" />
                    <span>
                      <Words
                        k="lookup.privacy"
                        parts={{
                          link: (
                            <Link to={loginThen(paths.request(query.data.request_number))}>{t("lookup.signIn")}</Link>
                          ),
                        }}
                      />
                    </span>
                  </span>
                </span>
              )
            }
          />
        ) : null}
      </div>
    </FormPage>
  );
}
