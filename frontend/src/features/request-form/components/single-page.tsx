import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef } from "react";
import { useForm, useWatch } from "react-hook-form";
import { Link, useLocation, useNavigate, useSearchParams } from "react-router-dom";
import { Field, Form, TickField } from "@/components/form";
import { FormPage } from "@/components/pages";
import { ExitPage } from "@/components/exit-page";
import { QueryView } from "@/components/query-view";
import { FormSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { TickLine } from "@/components/ui/checkbox";
import { Notice } from "@/components/ui/notice";
import { Select } from "@/components/ui/select";
import { errorHint, fieldErrors } from "@/lib/errors";
import { helpKindsQuery } from "@/lib/help-kinds-query";
import { t } from "@/messages";
import { localName } from "@/lib/local-name";
import "@/messages/en/requestForm";
import { emptyIdentity, showsSent, withTyped, type Chosen } from "../answers";

import { contactFields, personalFields, singlePageSchema, type SinglePage } from "../schema";
import { isChangedMeanwhile } from "../use-answers";
import { useDocuments } from "../use-documents";
import { documentsArrived, useSendWaiting, useSubmit, whyNotSent } from "../use-submit";
import { NoCategories } from "./category-step";
import { DetailsFields } from "./details-step";
import { DocumentsField } from "./documents-field";
import { formParams } from "./category-step";
import { Frame, SaveNotices, SaveState, showFromTop, showSessionEnd } from "./frame";
import { IdentityFields } from "./info-step";
import { ChangedElsewhere } from "./changed-elsewhere";
import { NonprofitPicker } from "./nonprofit-picker";
import { AlreadySent } from "./review-step";
import { SentStep } from "./sent-step";
import { WaitingToSend } from "./waiting-to-send";
import { Keep, placeOf, useIdentified, type FormProps } from "./wizard";

/** The server's field names → this form's. */
const fieldOf: Record<string, Parameters<ReturnType<typeof useForm<SinglePage>>["setError"]>[0]> = {
  category_id: "categoryId",
  nonprofits: "nonprofits",
  description: "description",
  amount: "amount",
  contact_consent: "consent",
  first_name: "identity.firstName",
  last_name: "identity.lastName",
  email: "identity.email",
  phone: "identity.phone",
  address: "identity.address",
  city: "identity.city",
  state: "identity.state",
  postal_code: "identity.postalCode",
};

/** Everything on one page. The answers are shared with the wizard, so people can switch at any time. */
export function SinglePageForm(props: FormProps) {
  const key = `${props.state.answers.key} ${props.state.version}`;
  const before = useRef(key);
  // as between two steps (`Frame`)
  useLayoutEffect(() => {
    if (before.current === key) return;
    before.current = key;
    showFromTop();
  }, [key]);
  // another request, or another version of it, has other fields
  return <OnePage key={key} {...props} />;
}

function OnePage({ state, user, expired }: FormProps) {
  const { answers, sent, saving, change, save, finish } = state;
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [params] = useSearchParams();
  const signedIn = user !== null;
  const categories = useQuery(helpKindsQuery);
  const { identifying: waiting } = useIdentified(user, answers, state.fill);
  const documents = useDocuments({ answers, change, signedIn, save, onAdd: state.stopWaiting });
  const stepHref = (step: string) => `${pathname}?${new URLSearchParams({ ...Object.fromEntries(params), step })}`;

  const form = useForm<SinglePage>({
    resolver: zodResolver(singlePageSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: {
      categoryId: answers.category?.id ?? "",
      nonprofits: [...answers.nonprofits],
      description: answers.description,
      amount: answers.amount,
      identity: answers.identity,
      texts: answers.texts ?? user?.textConsent ?? false,
      consent: answers.consent,
    },
  });

  const texts = useWatch({ control: form.control, name: "texts" });

  // the session's data arrives after the form is shown, and fills only empty fields
  const filled = useRef(false);
  useEffect(() => {
    if (filled.current || waiting || !user || answers.identity.email !== user.email) return;
    filled.current = true;
    for (const field of [...personalFields, ...contactFields])
      if (field === "email" || !form.getValues(`identity.${field}`))
        form.setValue(`identity.${field}`, answers.identity[field]);
  }, [waiting, user, answers.identity, form]);

  const names = categories.data;
  // a layout effect, because an effect after the paint would miss early typing
  useLayoutEffect(() => {
    const take = ({ values }: { values: SinglePage }) => {
      const id = values.categoryId;
      change((now) => ({
        category:
          id === ""
            ? null
            : id === now.category?.id
              ? now.category
              : { id, name: names?.find((c) => c.id === id)?.name ?? "" },
        nonprofits: values.nonprofits,
        description: values.description,
        amount: values.amount,
        consent: values.consent,
        texts: values.texts,
        // until the session's data is filled in, an empty field must not overwrite it
        identity:
          filled.current || !user ? { ...emptyIdentity, ...values.identity } : withTyped(now.identity, values.identity),
      }));
    };
    return form.subscribe({ formState: { values: true }, callback: take });
  }, [form, change, names, user]);

  const submit = useSubmit({
    signedIn,
    seen: state.seen,
    meet: state.meet,
    leaveDraft: state.leaveDraft,
    isCurrent: state.isCurrent,
    onWaits: state.setWaits,
    stopWaiting: state.stopWaiting,
    onSent: (request) => {
      finish(request);
      void navigate(stepHref("sent"), { replace: true });
    },
    onProofOver: () => change({ account: null }),
  });

  const sendNow = () => submit.mutate({ answers });
  const waits = state.waits && !expired;
  const stopped = state.stopped && !expired;
  useSendWaiting({ waits, busy: submit.isPending || documents.busy || documents.failed, send: sendNow });

  // The saved draft stays in the account, so its address must not show empty answers.
  const startOver = () => {
    const next = formParams(params, "single");
    next.delete("draft");
    void navigate(`${pathname}?${next}`);
  };

  // a draft's own address shows that it was sent
  const wanted = params.get("step") ?? (params.has("draft") ? "sent" : null);
  if (showsSent(wanted, sent, answers) && sent) {
    return (
      <Frame step="sent" title={t("requestForm.sentTitle")} saving={saving} expired={expired} hrefOf={stepHref}>
        <SentStep sent={sent} signedIn={signedIn} />
      </Frame>
    );
  }

  const send = () => {
    if (expired) return showSessionEnd();
    if (!documentsArrived(documents)) return;
    // so that a reload finds the confirmation if the request arrives meanwhile
    void navigate(stepHref("review"), { replace: true, preventScrollReset: true });
    submit.mutate(
      { answers, pressed: true },
      {
        onError: (error) => {
          for (const [name, message] of Object.entries(fieldErrors(error))) {
            const field = fieldOf[name];
            if (field) form.setError(field, { message });
          }
        },
      },
    );
  };
  const choose = (which: "mine" | "theirs") => {
    // the button that was pressed goes away
    showFromTop();
    state.settle(which);
    submit.reset();
  };
  const why =
    answers.category === null
      ? t("requestForm.categoryRequired")
      : answers.nonprofits.length === 0
        ? t("requestForm.nonprofitRequired")
        : null;
  return (
    <FormPage
      className="wiz"
      title={t("requestForm.title")}
      lead={t("requestForm.singleLead")}
      back={
        <div className="wiz-top keeps">
          <SaveState saving={saving} />
          <ExitPage />
        </div>
      }
    >
      {state.meanwhile && !expired ? (
        <ChangedElsewhere
          theirs={state.meanwhile}
          answers={answers}
          onChoose={choose}
          shown={isChangedMeanwhile(submit.error) ? submit.error : null}
        />
      ) : waits || stopped ? (
        <WaitingToSend
          submit={submit}
          stopped={stopped}
          onSend={() => {
            if (documentsArrived(documents)) sendNow();
          }}
          onStop={() => state.setWaits(false)}
        />
      ) : (
        <SaveNotices saving={saving} expired={expired} />
      )}
      <p className="mb-6 text-soft">
        <Link to={`${pathname}?${formParams(params, "wizard")}`}>{t("requestForm.wizardLink")}</Link>{" "}
        {t("requestForm.wizardBody")}
      </p>
      <Form form={form} onSubmit={send}>
        <AlreadySent
          error={submit.error}
          onRenew={() => {
            state.renew();
            submit.reset();
          }}
        />
        {submit.error &&
        !waits &&
        !stopped &&
        errorHint(submit.error) !== "key_reused" &&
        !state.meanwhile &&
        Object.keys(fieldErrors(submit.error)).length === 0 ? (
          <Notice tone="bad" role="alert" title={t("requestForm.submitErrorTitle")}>
            {whyNotSent(submit.error)}
          </Notice>
        ) : null}
        <h2 className="text-xl">{t("requestForm.sectionHelp")}</h2>
        <QueryView
          query={categories}
          empty={<NoCategories />}
          failedTitle={t("requestForm.categoriesFailed")}
          loading={<FormSkeleton fields={1} />}
        >
          {(list) => (
            <Field name="categoryId" label={t("requestForm.categoryField")}>
              {({ value, onChange, ...control }) => (
                <Select
                  {...control}
                  value={String(value)}
                  options={list.map(({ id, name }) => ({ value: id, label: localName(name) }))}
                  onChange={(id) => {
                    // another kind of help, other nonprofits (section 4)
                    if (id !== value && id !== "")
                      form.setValue("nonprofits", [], { shouldValidate: form.formState.isSubmitted });
                    onChange(id);
                  }}
                />
              )}
            </Field>
          )}
        </QueryView>
        <DetailsFields />
        <DocumentsField stored={answers.documents} documents={documents} />

        <h2 className="text-xl">{t("requestForm.sectionPeople")}</h2>
        <Field
          name="nonprofits"
          as="group"
          label={t("requestForm.nonprofitsLegend")}
          hint={t("requestForm.nonprofitsLead")}
        >
          {({ value, onChange, id }) => (
            <div id={id} tabIndex={-1} className="outline-none">
              <NonprofitPicker
                need={answers.category}
                place={placeOf(answers.identity)}
                chosen={value as Chosen[]}
                onChange={(chosen) => onChange([...chosen])}
                toastOn="single"
              />
              <p className="mt-3" role="status">
                <strong className="num">{t("requestForm.counter", { count: (value as Chosen[]).length })}</strong>{" "}
                {t("requestForm.chosen")}
              </p>
            </div>
          )}
        </Field>

        <h2 className="text-xl">{t("requestForm.sectionYou")}</h2>
        <IdentityFields
          fields={[...personalFields, ...contactFields]}
          prefix="identity."
          readOnlyEmail={signedIn || expired}
          texts={{ on: texts, set: (on) => form.setValue("texts", on) }}
        />

        <TickField name="consent">
          {(control) => <TickLine {...control}>{t("requestForm.consent")}</TickLine>}
        </TickField>
        <div className="grid gap-3">
          <Button
            type="submit"
            variant="primary"
            size="big"
            full
            busy={submit.isPending}
            busyLabel={t("requestForm.submitting")}
            disabled={why !== null}
            aria-describedby={why ? "why-not-submit" : undefined}
          >
            {t("requestForm.submit")}
          </Button>
          {why ? (
            <p id="why-not-submit" className="small text-soft">
              {why}
            </p>
          ) : null}
          <p className="small text-soft">{t("requestForm.submitNote")}</p>
        </div>
      </Form>
      <Keep state={state} signedIn={signedIn} onCleared={startOver} />
    </FormPage>
  );
}
