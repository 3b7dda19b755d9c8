import { zodResolver } from "@hookform/resolvers/zod";
import { Fragment, useMemo, useState } from "react";
import { useFormContext, useWatch } from "react-hook-form";
import { z } from "zod";
import { Field, Form } from "@/components/form";
import { NoAddress, useWithoutAddress } from "@/components/no-address";
import { TextConsent } from "@/components/text-consent";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { hasKeptEdit, useEditForm } from "@/lib/edit-form";
import { fieldErrors, isAccessEnded } from "@/lib/errors";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import { text } from "@/schemas/atoms";
import { useCorrect, type Correction, type GuestAccess, type RequestRow } from "../api";

const schema = z.object({
  first_name: text(2, t("myRequests.correctFirstName")),
  last_name: text(2, t("myRequests.correctLastName")),
  phone: text(5, t("myRequests.correctPhone")),
  sms_consent: z.boolean(),
  address: text(5, t("myRequests.correctAddress")),
  city: text(2, t("myRequests.correctCity")),
  state: text(2, t("myRequests.correctState")),
  postal_code: text(2, t("myRequests.correctPostalCode")),
}) satisfies z.ZodType<Correction>;

type TextField = Exclude<keyof Correction, "sms_consent">;
const fields: readonly TextField[] = ["first_name", "last_name", "phone", "address", "city", "state", "postal_code"];
const autocomplete: Record<TextField, string> = {
  first_name: "given-name",
  last_name: "family-name",
  phone: "tel",
  address: "street-address",
  city: "address-level2",
  state: "address-level1",
  postal_code: "postal-code",
};

/** Corrects phone number and address while the request is open, so that staff can reach the person. */
export function CorrectForm({ request, guest }: { request: RequestRow; guest?: GuestAccess }) {
  const { user } = useSession();
  const keptAs = `correct-${request.id}-${user?.id ?? "guest"}`;
  const [open, setOpen] = useState(() => hasKeptEdit(keptAs));
  return open ? (
    <Fields request={request} guest={guest} keptAs={keptAs} onDone={() => setOpen(false)} />
  ) : (
    <Button className="no-print mt-4" onClick={() => setOpen(true)}>
      {t("myRequests.correct")}
    </Button>
  );
}

interface FieldsProps {
  request: RequestRow;
  guest?: GuestAccess;
  keptAs: string;
  onDone: () => void;
}

function Fields({ request, guest, keptAs, onDone }: FieldsProps) {
  const correct = useCorrect(request.id, guest?.access);
  const row = useMemo(
    () => Object.fromEntries([...fields, "sms_consent" as const].map((field) => [field, request[field]])) as Correction,
    [request],
  );
  const { form, attempt, discard } = useEditForm<Correction>({
    row,
    keptAs,
    resolver: zodResolver(schema),
    mode: "onTouched",
    shouldFocusError: false,
  });
  const submit = (values: Correction) => {
    const { changed, succeeded } = attempt(values);
    // Another number needs the consent anew, as it stands beside it. Otherwise a STOP may have ended it meanwhile.
    const consent = changed.phone === undefined ? {} : { sms_consent: values.sms_consent };
    correct.mutate(
      // correct_request leaves alone what it is not given
      { ...changed, ...consent } as Correction,
      {
        onSuccess: () => {
          succeeded();
          toast({ title: t("myRequests.corrected"), description: t("myRequests.correctedBody") });
          onDone();
        },
        onError: (error) => {
          if (isAccessEnded(error)) guest?.onEnded();
          for (const [name, message] of Object.entries(fieldErrors(error)))
            if (fields.includes(name as TextField)) form.setError(name as TextField, { message });
        },
      },
    );
  };
  return (
    <Form
      form={form}
      className="no-print mt-6"
      error={correct.error && Object.keys(fieldErrors(correct.error)).length === 0 ? correct.error : null}
      errorTitle={t("myRequests.correctFailed")}
      onSubmit={submit}
    >
      <div className="pair">
        <CorrectFields />
      </div>
      <div className="actions">
        <Button type="submit" variant="primary" busy={correct.isPending} busyLabel={t("common.saving")}>
          {t("myRequests.correctSave")}
        </Button>
        <Button
          onClick={() => {
            discard();
            onDone();
          }}
        >
          {t("common.cancel")}
        </Button>
      </div>
    </Form>
  );
}

function Texts() {
  const { control, setValue } = useFormContext<Correction>();
  const [phone, on] = useWatch({ control, name: ["phone", "sms_consent"] });
  return <TextConsent number={phone} checked={on} onChange={(to) => setValue("sms_consent", to)} />;
}

function CorrectFields() {
  const without = useWithoutAddress("address");
  return (
    <>
      {fields
        .filter((name) => !without || (name !== "address" && name !== "postal_code"))
        .map((name) => (
          <Fragment key={name}>
            {name === (without ? "city" : "address") ? <NoAddress address="address" postalCode="postal_code" /> : null}
            <Field<Correction>
              name={name}
              label={t(`myRequests.field.${name}`)}
              className={name === "phone" || name === "address" ? "col-span-full" : undefined}
            >
              {(control) => (
                <Input {...control} type={name === "phone" ? "tel" : "text"} autoComplete={autocomplete[name]} />
              )}
            </Field>
            {name === "phone" ? <Texts /> : null}
          </Fragment>
        ))}
    </>
  );
}
