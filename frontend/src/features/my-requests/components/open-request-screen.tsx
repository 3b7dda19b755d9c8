import { zodResolver } from "@hookform/resolvers/zod";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";
import { useForm } from "react-hook-form";
import { Link, useSearchParams } from "react-router-dom";
import { z } from "zod";
import { loginThen, paths } from "@/app/paths";
import { CodeForm } from "@/components/code-form";
import { ExitPage } from "@/components/exit-page";
import { Field, Form } from "@/components/form";
import { FormPage } from "@/components/pages";
import { DetailSkeleton, FailedState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { TickLine } from "@/components/ui/checkbox";
import { Input } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { Words } from "@/components/words";
import { useAppConfig } from "@/lib/env";
import { errorMessage, isAccessEnded } from "@/lib/errors";
import { reads } from "@/lib/query-keys";
import { normalizeNumber } from "@/lib/request-number";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/addressCode";
import "@/messages/en/openRequest";
import "@/messages/en/texts";
import { text } from "@/schemas/atoms";
import "@/styles/requests.css";
import { checkRequestCode, detailQuery, endRequestAccess, sendRequestCode } from "../api";
import { forgetAccess, keepAccess, readAccess, type HeldAccess } from "../request-access";
import { Detail } from "./detail-screen";

const numberSchema = z.object({ number: text(3, t("openRequest.required")) });

const failed = (error: unknown) =>
  toast({ variant: "destructive", title: t("openRequest.failed"), description: errorMessage(error) });

/** /open-request: a person without an account opens their request with its number and a code mailed to its address. */
export function OpenRequestScreen() {
  const [params] = useSearchParams();
  const asked = params.get("number") ?? "";
  const cache = useQueryClient();
  const [held, setHeld] = useState<HeldAccess | null>(() => {
    const kept = readAccess();
    // a link to another request needs that one's code
    return kept && (asked === "" || kept.number === normalizeNumber(asked)) ? kept : null;
  });
  const [ended, setEnded] = useState(false);
  const close = (byItself: boolean) => {
    forgetAccess();
    setHeld(null);
    setEnded(byItself);
    cache.removeQueries({ queryKey: [...reads.myRequests, "guest"] });
  };
  if (held) return <Opened held={held} onClosed={close} />;
  return (
    <Ask
      number={asked}
      ended={ended}
      onOpened={(opened) => {
        keepAccess(opened);
        setHeld(opened);
      }}
    />
  );
}

interface AskProps {
  number: string;
  /** The access to the request has expired. */
  ended: boolean;
  onOpened: (held: HeldAccess) => void;
}

/** First the number, then the code. */
function Ask({ number: given, ended, onOpened }: AskProps) {
  const [number, setNumber] = useState<string | null>(null);
  const [channel, setChannel] = useState<"email" | "sms">("email");
  const texts = useAppConfig()?.sms ?? false;
  const form = useForm({
    resolver: zodResolver(numberSchema),
    mode: "onSubmit",
    shouldFocusError: false,
    defaultValues: { number: given },
  });
  const send = useMutation({ mutationFn: sendRequestCode, onError: failed });
  return (
    <FormPage title={t("openRequest.title")} lead={number === null ? t("openRequest.lead") : null} aside={<ExitPage />}>
      {ended ? (
        <Notice tone="info" role="status" className="mb-6" title={t("openRequest.endedTitle")}>
          {t("openRequest.endedBody")}
        </Notice>
      ) : null}
      {number === null ? (
        <>
          <Form
            form={form}
            onSubmit={({ number: typed }) =>
              send.mutate({ number: typed, channel }, { onSuccess: () => setNumber(normalizeNumber(typed)) })
            }
          >
            <Field name="number" label={t("openRequest.number")} hint={t("openRequest.numberHint")}>
              {(control) => (
                <Input
                  {...control}
                  className="num max-w-60"
                  autoCapitalize="characters"
                  autoComplete="off"
                  spellCheck={false}
                  maxLength={40}
                />
              )}
            </Field>
            {texts ? (
              <div>
                <TickLine
                  checked={channel === "sms"}
                  onCheckedChange={(on) => setChannel(on === true ? "sms" : "email")}
                  aria-describedby="by-text-hint"
                >
                  {t("texts.codeByText")}
                </TickLine>
                <p id="by-text-hint" className="hint mt-1">
                  {t("texts.codeByTextHint")}
                </p>
              </div>
            ) : null}
            <div className="actions">
              <Button type="submit" variant="primary" busy={send.isPending} busyLabel={t("openRequest.sending")}>
                {t("openRequest.send")}
              </Button>
            </div>
          </Form>
          <p className="mt-6 text-soft">
            <Words
              k="openRequest.account"
              parts={{ link: <Link to={loginThen(paths.myRequests)}>{t("openRequest.signIn")}</Link> }}
            />
          </p>
        </>
      ) : (
        <>
          <CodeForm
            sent={t(channel === "sms" ? "texts.sent" : "openRequest.sent", { number })}
            check={(code) => checkRequestCode(number, code)}
            checkLabel={t("openRequest.open")}
            onProved={(answer) =>
              onOpened({
                number: answer.request_number,
                access: answer.access,
                uploadKey: answer.upload_key,
                expiresAt: answer.expires_at,
              })
            }
            onFailed={failed}
            onAgain={() =>
              send.mutate({ number, channel }, { onSuccess: () => toast({ title: t("addressCode.resent") }) })
            }
            sendingAgain={send.isPending}
            leaveLabel={t("openRequest.otherNumber")}
            onLeave={() => setNumber(null)}
          />
          <p className="small mt-4 text-soft">{t("openRequest.nothingComes")}</p>
        </>
      )}
    </FormPage>
  );
}

function Opened({ held, onClosed }: { held: HeldAccess; onClosed: (byItself: boolean) => void }) {
  const query = useQuery(detailQuery("guest", held.number, held.access));
  const leave = useMutation({ mutationFn: () => endRequestAccess(held.access), onSettled: () => onClosed(false) });
  const over = query.isError && isAccessEnded(query.error);
  // nobody may be there any more, so the page does not wait until something is read again
  const close = useEffectEvent(() => onClosed(true));
  useEffect(() => {
    const left = Date.parse(held.expiresAt) - Date.now();
    // this device's clock is wrong: the server says when the access ends
    if (left <= 0) return;
    const timer = setTimeout(close, left);
    return () => clearTimeout(timer);
  }, [held.expiresAt]);
  if (query.data && !over) {
    return (
      <Detail
        detail={query.data}
        guest={{ access: held.access, uploadKey: held.uploadKey, onEnded: () => onClosed(true) }}
        leave={
          <Button busy={leave.isPending} onClick={() => leave.mutate()}>
            {t("openRequest.close")}
          </Button>
        }
      />
    );
  }
  return (
    <FormPage title={t("openRequest.title")} heading="">
      {query.isPending ? (
        <DetailSkeleton />
      ) : over ? (
        <Notice tone="info" role="alert" title={t("openRequest.endedTitle")}>
          <p>{t("openRequest.endedBody")}</p>
          <Button className="mt-3" onClick={() => onClosed(true)}>
            {t("openRequest.newCode")}
          </Button>
        </Notice>
      ) : (
        <FailedState error={query.error} heading="h1" onRetry={() => void query.refetch()} />
      )}
    </FormPage>
  );
}
