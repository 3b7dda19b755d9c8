import { zodResolver } from "@hookform/resolvers/zod";
import { useMemo, type ReactNode } from "react";
import { useFormContext, useWatch } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { TextConsent } from "@/components/text-consent";
import { Button } from "@/components/ui/button";
import { Input, Textarea } from "@/components/ui/input";
import { Select } from "@/components/ui/select";
import { countryOptions } from "@/lib/countries";
import { useEditForm } from "@/lib/edit-form";
import { errorMessage, fieldErrors } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { useSaveProfile, type Profile } from "./api";
import { profileSchema, type ProfileForm as Values } from "./schema";

/** Stored in English, whatever language the page speaks. */
const idTypeOptions = () => [
  { value: "Passport", label: t("account.idPassport") },
  { value: "National ID card", label: t("account.idNational") },
  { value: "Driver's license", label: t("account.idDriver") },
  { value: "Residence permit", label: t("account.idResidence") },
  { value: "Voter card", label: t("account.idVoter") },
  { value: "Other", label: t("account.idOther") },
];

/** A stored value that is not (or no longer) on the list stays choosable. */
function withStored(options: { value: string; label: string }[], stored: string | null) {
  return stored && !options.some((option) => option.value === stored)
    ? [{ value: stored, label: stored }, ...options]
    : options;
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className="form">
      <legend className="mb-4 text-xl font-[650] tracking-[-0.014em]">{title}</legend>
      {children}
    </fieldset>
  );
}

/** The consent to texts, which can be withdrawn here. */
function Texts({ stoppedAt }: { stoppedAt: string | null }) {
  const { control, setValue } = useFormContext<Values>();
  const [phone, on] = useWatch({ control, name: ["phone", "sms_consent"] });
  const set = (to: boolean) => setValue("sms_consent", to, { shouldDirty: true });
  return <TextConsent number={phone} checked={on} onChange={set} stoppedAt={stoppedAt} />;
}

const valuesOf = (profile: Profile): Values => ({
  first_name: profile.first_name ?? "",
  middle_name: profile.middle_name ?? "",
  last_name: profile.last_name ?? "",
  email: profile.email,
  phone: profile.phone ?? "",
  sms_consent: profile.sms_consent,
  birthday: profile.birthday ?? "",
  country: profile.country ?? "",
  id_type: profile.id_type ?? "",
  id_number: profile.id_number ?? "",
  bio: profile.bio ?? "",
});

const unkept = ["id_number"] as const;

export function ProfileForm({ profile }: { profile: Profile }) {
  const save = useSaveProfile(profile.id);
  const row = useMemo(() => valuesOf(profile), [profile]);
  const { form, attempt, discard } = useEditForm<Values>({
    row,
    keptAs: `profile-${profile.id}`,
    unkept,
    resolver: zodResolver(profileSchema),
    mode: "onTouched",
    shouldFocusError: false,
  });

  const onSubmit = (values: Values) => {
    const { changed, succeeded } = attempt(values);
    save.mutate(changed, {
      onSuccess: () => {
        succeeded();
        toast({ title: t("account.updated"), description: t("account.updatedBody") });
      },
      onError: (error) => {
        for (const [name, message] of Object.entries(fieldErrors(error)))
          form.setError(name as keyof Values, { message });
        toast({
          variant: "destructive",
          title: t("account.updateFailed"),
          description: errorMessage(error, "account.updateFailedBody"),
        });
      },
    });
  };

  return (
    <Form
      form={form}
      onSubmit={onSubmit}
      error={save.error && Object.keys(fieldErrors(save.error)).length === 0 ? save.error : null}
      errorTitle={t("account.updateFailed")}
      className="gap-10!"
    >
      <Section title={t("account.sectionName")}>
        <div className="grid-2 items-end">
          <Field name="first_name" label={t("account.firstName")}>
            {(control) => <Input autoComplete="given-name" {...control} />}
          </Field>
          <Field name="middle_name" label={t("account.middleName")} optional>
            {(control) => <Input autoComplete="additional-name" {...control} />}
          </Field>
        </div>
        <Field name="last_name" label={t("account.lastName")}>
          {(control) => <Input autoComplete="family-name" {...control} />}
        </Field>
      </Section>
      <Section title={t("account.sectionContact")}>
        <Field name="email" label={t("account.email")} hint={t("account.emailHint")}>
          {(control) => <Input type="email" readOnly {...control} />}
        </Field>
        <Field name="phone" label={t("account.phone")} optional>
          {(control) => <Input type="tel" autoComplete="tel" {...control} />}
        </Field>
        <Texts stoppedAt={profile.sms_stopped_at} />
      </Section>
      <Section title={t("account.sectionAbout")}>
        <div className="grid-2 items-end">
          <Field
            name="birthday"
            label={t("account.birthday")}
            hint={profile.age === null ? undefined : t("account.age", { age: profile.age })}
          >
            {(control) => <Input type="date" autoComplete="bday" {...control} />}
          </Field>
          <Field name="country" label={t("account.country")}>
            {(control) => <Select options={withStored(countryOptions(), profile.country)} {...control} />}
          </Field>
        </div>
        <div className="grid-2 items-end">
          <Field name="id_type" label={t("account.idType")}>
            {(control) => <Select options={withStored(idTypeOptions(), profile.id_type)} {...control} />}
          </Field>
          <Field name="id_number" label={t("account.idNumber")} hint={t("account.idHint")}>
            {(control) => <Input autoComplete="off" {...control} />}
          </Field>
        </div>
        <Field name="bio" label={t("account.bio")} optional>
          {(control) => <Textarea rows={4} {...control} />}
        </Field>
      </Section>
      <div className="actions">
        <Button type="submit" variant="primary" busy={save.isPending} busyLabel={t("common.saving")}>
          {t("account.saveChanges")}
        </Button>
        <Button onClick={discard}>{t("common.cancel")}</Button>
      </div>
    </Form>
  );
}
