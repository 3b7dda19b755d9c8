import { zodResolver } from "@hookform/resolvers/zod";
import { Fragment, lazy, Suspense, useLayoutEffect, useRef, useState } from "react";
import { useForm, useFormContext, useWatch } from "react-hook-form";
import { Link, useLocation } from "react-router-dom";
import { AddressTypo } from "@/components/address-typo";
import { Field, Form } from "@/components/form";
import { NoAddress, useWithoutAddress } from "@/components/no-address";
import { FormSkeleton } from "@/components/states";
import { TextConsent } from "@/components/text-consent";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { loginThen } from "@/app/paths";
import { dismissToast, toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import type { Answers } from "../answers";
import { isAnswered } from "../progress";
import { contactFields, contactSchema, personalFields, personalSchema, type Identity } from "../schema";
import { email } from "@/schemas/atoms";

/** Loaded lazily, because only some people look for their account. */
const AccountMatch = lazy(() => import("./account-match").then((module) => ({ default: module.AccountMatch })));

type TabName = "personal" | "contact";

export interface InfoStepProps {
  answers: Answers;
  /** The account's address; null when signed out. */
  accountEmail: string | null;
  /** The account's session has ended; the page says so elsewhere. */
  expired?: boolean;
  /** The request could not be sent with its account, because the address was proved too long ago. */
  proofOver?: boolean;
  /** Where it can be sent without the account. */
  withoutHref?: string;
  onIdentity: (identity: Partial<Identity>) => void;
  onTexts: (on: boolean) => void;
  onAccount: (account: Answers["account"]) => void;
  onContinue: () => void;
}

/** What fields of the identity form a browser may fill in. */
const autocomplete: Record<keyof Identity, string> = {
  firstName: "given-name",
  lastName: "family-name",
  email: "email",
  phone: "tel",
  address: "street-address",
  city: "address-level2",
  state: "address-level1",
  postalCode: "postal-code",
};

/** Fields of the identity, wired; shared with the single page, where names lie under `identity.`. */
export function IdentityFields({
  fields,
  prefix = "",
  readOnlyEmail,
  texts,
}: {
  fields: readonly (keyof Identity)[];
  prefix?: "" | "identity.";
  readOnlyEmail?: boolean;
  /** The consent to texts, beside the phone number. */
  texts?: { on: boolean; set: (on: boolean) => void };
}) {
  const withoutAddress = useWithoutAddress(`${prefix}address`);
  const withAddress = fields.includes("address");
  const shown = withoutAddress ? fields.filter((name) => name !== "address" && name !== "postalCode") : fields;
  return (
    <div className="pair">
      {withAddress ? <NoAddress address={`${prefix}address`} postalCode={`${prefix}postalCode`} /> : null}
      {shown.map((name) => (
        <Fragment key={name}>
          <Field
            name={`${prefix}${name}`}
            label={t(`requestForm.${name}`)}
            hint={
              name === "email" ? t(readOnlyEmail ? "requestForm.emailAccountHint" : "requestForm.emailHint") : undefined
            }
            className={name === "email" || name === "phone" || name === "address" ? "col-span-full" : undefined}
          >
            {(control) => (
              <Input
                {...control}
                type={name === "email" ? "email" : name === "phone" ? "tel" : "text"}
                autoComplete={autocomplete[name]}
                readOnly={name === "email" && readOnlyEmail}
              />
            )}
          </Field>
          {name === "email" && !readOnlyEmail ? <AddressTypo name={`${prefix}email`} /> : null}
          {name === "phone" && texts ? <Texts name={`${prefix}phone`} {...texts} /> : null}
        </Fragment>
      ))}
    </div>
  );
}

function Texts({ name, on, set }: { name: string; on: boolean; set: (on: boolean) => void }) {
  const number: unknown = useWatch({ control: useFormContext().control, name });
  return <TextConsent number={typeof number === "string" ? number : ""} checked={on} onChange={set} />;
}

function pick<K extends keyof Identity>(identity: Identity, fields: readonly K[]): Pick<Identity, K> {
  return Object.fromEntries(fields.map((field) => [field, identity[field]])) as Pick<Identity, K>;
}

/** Step 3: the person's data, in two tabs. The second opens once the first is complete. */
export function InfoStep(props: InfoStepProps) {
  const { answers, accountEmail, expired, proofOver, withoutHref, onIdentity, onTexts, onAccount, onContinue } = props;
  const { pathname, search } = useLocation();
  const { identity } = answers;
  const [tab, setTab] = useState<TabName>("personal");
  const [matching, setMatching] = useState(false);
  const personal = useForm({
    resolver: zodResolver(personalSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: pick(identity, personalFields),
  });
  const contact = useForm({
    resolver: zodResolver(contactSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: pick(identity, contactFields),
  });

  // every keystroke is saved, including the first, so that leaving the page loses nothing
  useLayoutEffect(() => {
    const tell = ({ values }: { values: Partial<Identity> }) => onIdentity(values);
    const stopPersonal = personal.subscribe({ formState: { values: true }, callback: tell });
    const stopContact = contact.subscribe({ formState: { values: true }, callback: tell });
    return () => {
      stopPersonal();
      stopContact();
    };
  }, [personal, contact, onIdentity]);

  const told = useRef<number | null>(null);
  const missing = () => personalFields.some((field) => !personal.getValues(field)?.trim());
  const tellMissing = () => {
    // what was said before is settled, or said anew
    if (told.current !== null) dismissToast(told.current);
    told.current = null;
    if (missing()) {
      told.current = toast({
        variant: "destructive",
        title: t("requestForm.fieldsMissing"),
        description: t("requestForm.fieldsMissingBody"),
      });
    }
  };
  const openTab = (next: string) => {
    if (next === "personal") return setTab("personal");
    tellMissing();
    void personal.handleSubmit(() => setTab("contact"))();
  };

  const offersAgain = proofOver === true && accountEmail === null;
  const find = () => {
    if (email().safeParse(personal.getValues("email")).success) setMatching(true);
    else {
      void personal.trigger("email", { shouldFocus: true });
      toast({ variant: "info", title: t("requestForm.findNeedsEmail") });
    }
  };

  if (matching) {
    return (
      <Suspense fallback={<FormSkeleton fields={1} />}>
        <AccountMatch
          email={personal.getValues("email").trim()}
          onChoose={(account) => {
            onAccount(account);
            setMatching(false);
          }}
          onLeave={() => setMatching(false)}
        />
      </Suspense>
    );
  }

  return (
    <>
      {accountEmail && !expired ? (
        <Notice tone="info" className="mb-6" title={t("requestForm.identifiedTitle", { email: accountEmail })}>
          {t("requestForm.identifiedBody")}
        </Notice>
      ) : null}
      {answers.account ? (
        <Notice tone="good" className="mb-6" role="status">
          <p>{t("requestForm.linked", { name: answers.account.fullName || answers.account.email })}</p>
          <Button className="mt-3" onClick={() => onAccount(null)}>
            {t("requestForm.unlink")}
          </Button>
        </Notice>
      ) : offersAgain ? (
        <Notice tone="warn" className="mb-6" role="alert" title={t("unsent.proofOverTitle")}>
          <p>{t("unsent.proofOverBody")}</p>
          <div className="actions mt-3">
            <Button onClick={find}>{t("requestForm.findButton")}</Button>
            {withoutHref ? (
              <Button asChild>
                <Link to={withoutHref}>{t("requestForm.skipMatch")}</Link>
              </Button>
            ) : null}
          </div>
        </Notice>
      ) : null}
      <Tabs value={tab} onValueChange={openTab}>
        <TabsList aria-label={t("requestForm.tabsLabel")}>
          <Tab value="personal">{t("requestForm.tabPersonal")}</Tab>
          <Tab value="contact">{t("requestForm.tabContact")}</Tab>
        </TabsList>
        <TabPanel value="personal">
          <Form form={personal} onSubmit={() => setTab("contact")} onSubmitCapture={tellMissing}>
            <IdentityFields
              fields={personalFields}
              readOnlyEmail={accountEmail !== null}
              texts={{ on: answers.texts ?? false, set: onTexts }}
            />
            <div className="actions">
              <Button type="submit" variant="primary">
                {t("requestForm.next")}
              </Button>
            </div>
          </Form>
          {accountEmail || answers.account || offersAgain ? null : (
            <div className="wiz-tail">
              <h2 className="text-base">{t("requestForm.findTitle")}</h2>
              <p className="mt-1">{t("requestForm.findBody")}</p>
              <div className="row mt-3">
                <Button onClick={find}>{t("requestForm.findButton")}</Button>
                <Link to={loginThen(pathname + search)}>{t("requestForm.signIn")}</Link>
              </div>
            </div>
          )}
        </TabPanel>
        <TabPanel value="contact">
          <Form
            form={contact}
            onSubmit={() => {
              if (isAnswered({ ...answers, identity: { ...contact.getValues(), ...personal.getValues() } }, "info"))
                onContinue();
              else openTab("contact");
            }}
          >
            <IdentityFields fields={contactFields} />
            <div className="actions">
              <Button type="submit" variant="primary">
                {t("common.continue")}
              </Button>
              <Button onClick={() => setTab("personal")}>{t("common.back")}</Button>
            </div>
          </Form>
        </TabPanel>
      </Tabs>
    </>
  );
}
