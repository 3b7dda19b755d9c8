import { zodResolver } from "@hookform/resolvers/zod";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input, Textarea } from "@/components/ui/input";
import { errorHint } from "@/lib/errors";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { useCreateOrganization, type Founded } from "../api";
import { emptyOnboarding, onboardingSchema, type OnboardingForm as Values } from "../schema";

export interface OnboardingFormProps {
  userId: string;
  onFounded: (founded: Founded) => void | Promise<void>;
  /** The database says that this account already has an organization. */
  onAlreadyFounded: () => void | Promise<void>;
}

/** The form to create an organization: five required answers and up to two service categories. */
export function OnboardingForm({ userId, onFounded, onAlreadyFounded }: OnboardingFormProps) {
  const key = `onboarding:${userId}`;
  const form = useForm<Values>({
    resolver: zodResolver(onboardingSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept(key, emptyOnboarding),
  });
  const forget = useKeptForm(form, key);
  const create = useCreateOrganization();

  const submit = async (values: Values) => {
    try {
      const founded = await create.mutateAsync(values);
      forget();
      await onFounded(founded);
    } catch (error) {
      if (errorHint(error) === "one_organization") {
        forget();
        await onAlreadyFounded();
        return;
      }
      toast({
        variant: "destructive",
        title: t("organization.createErrorTitle"),
        description: t("organization.createError"),
      });
    }
  };

  return (
    <Form
      form={form}
      onSubmit={submit}
      onInvalid={() => toast({ variant: "destructive", title: t("organization.completeAll") })}
      error={create.error}
      errorTitle={t("organization.createErrorTitle")}
    >
      <Field<Values> name="name" label={t("organization.name")}>
        {(control) => <Input autoComplete="organization" {...control} />}
      </Field>
      <Field<Values> name="legalStatus" label={t("organization.legalStatus")} hint={t("organization.legalStatusHint")}>
        {(control) => <Input {...control} />}
      </Field>
      <Field<Values>
        name="registrationNumber"
        label={t("organization.registrationNumber")}
        hint={t("organization.registrationNumberHint")}
      >
        {(control) => <Input autoCapitalize="characters" spellCheck={false} {...control} />}
      </Field>
      <Field<Values>
        name="employeeCount"
        label={t("organization.employeeCount")}
        hint={t("organization.employeeCountHint")}
      >
        {(control) => <Input inputMode="numeric" className="num max-w-40" {...control} />}
      </Field>
      <Field<Values> name="mission" label={t("organization.mission")} hint={t("organization.missionHint")}>
        {(control) => <Textarea {...control} />}
      </Field>
      <ServiceCategories />
      <div className="grid gap-3">
        <Button
          type="submit"
          variant="primary"
          size="big"
          busy={form.formState.isSubmitting}
          busyLabel={t("organization.creating")}
          className="sm:justify-self-start"
        >
          {t("organization.create")}
        </Button>
        <p className="text-sm text-soft">{t("organization.draftKept")}</p>
      </div>
    </Form>
  );
}

function ServiceCategories() {
  return (
    <fieldset className="grid gap-5 border-t border-line pt-6">
      <legend className="contents">
        <span className="label">
          {t("organization.serviceCategories")} <span className="opt">{t("common.optional")}</span>
        </span>
      </legend>
      <p className="hint -mt-4">
        {t("organization.serviceCategoriesHint")} {t("organization.categoryIncomplete")}
      </p>
      {([0, 1] as const).map((index) => (
        <fieldset key={index} className="grid gap-3">
          <legend className="visually-hidden">{t("organization.serviceCategory", { number: index + 1 })}</legend>
          <div className="grid-2">
            <Field<Values> name={`categories.${index}.name`} label={t("organization.categoryName")}>
              {(control) => <Input {...control} />}
            </Field>
            <Field<Values> name={`categories.${index}.description`} label={t("organization.categoryDescription")}>
              {(control) => <Input {...control} />}
            </Field>
          </div>
        </fieldset>
      ))}
    </fieldset>
  );
}
