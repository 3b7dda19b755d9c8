import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId } from "react";
import { useForm, useFormContext, useWatch } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { TickLine } from "@/components/ui/checkbox";
import { Input, Textarea } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { errorHint, errorMessage } from "@/lib/errors";
import { helpKindsQuery } from "@/lib/help-kinds-query";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { localName } from "@/lib/local-name";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { organizationKeys, useSaveOrganization, type OrganizationDetails } from "../api";
import { settingsSchema, type SettingsForm as Values } from "../schema";

export const settingsOf = (details: OrganizationDetails): Values => ({
  name: details.name,
  legalStatus: details.legal_status,
  registrationNumber: details.registration_number,
  employeeCount: String(details.employee_count),
  mission: details.mission,
  description: details.description ?? "",
  email: details.email ?? "",
  phone: details.phone ?? "",
  website: details.website ?? "",
  location: details.location ?? "",
  helpsWith: details.helps_with.join(),
  serviceArea: details.service_area.join("\n"),
  responseDays: details.average_response_time_days === null ? "" : String(details.average_response_time_days),
  secondApprovalAbove: details.secondApprovalAbove === null ? "" : String(details.secondApprovalAbove),
});

/** The General tab. Managers read the same fields. */
export function GeneralSettings({
  details,
  userId,
  mayEdit,
  onSaved,
}: {
  details: OrganizationDetails;
  userId: string;
  mayEdit: boolean;
  onSaved: () => void | Promise<void>;
}) {
  const key = `organization:${details.id}:${userId}`;
  const stored = settingsOf(details);
  const form = useForm<Values>({
    resolver: zodResolver(settingsSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: mayEdit ? readKept(key, stored) : stored,
  });
  const forget = useKeptForm(form, key);
  const save = useSaveOrganization(details.id);
  const cache = useQueryClient();
  const submit = async (values: Values) => {
    try {
      const names = Object.keys(values) as (keyof Values)[];
      const changed = Object.fromEntries(
        names.filter((name) => values[name] !== stored[name]).map((name) => [name, values[name]]),
      );
      await save.mutateAsync({ changed, seen: stored });
      // keeps what was typed while saving
      form.reset(values, { keepValues: true });
      forget();
      toast({ title: t("organization.savedTitle"), description: t("organization.savedBody") });
      await onSaved();
    } catch (error) {
      // shows their version beside the typed one
      if (errorHint(error) === "changed_meanwhile")
        await cache.invalidateQueries({ queryKey: organizationKeys.details(details.id) });
      toast({
        variant: "destructive",
        title: t("organization.saveErrorTitle"),
        description: errorHint(error) === "changed_meanwhile" ? errorMessage(error) : t("organization.saveError"),
      });
    }
  };
  const readOnly = !mayEdit;
  return (
    <Form
      form={form}
      onSubmit={submit}
      error={save.error}
      errorTitle={t("organization.saveErrorTitle")}
      className="max-w-2xl"
    >
      {readOnly ? (
        <Notice tone="info" title={t("organization.readOnlyTitle")}>
          {t("organization.readOnlyGeneral")}
        </Notice>
      ) : null}
      <h2 className="text-lg">{t("organization.aboutSection")}</h2>
      <Field<Values> name="name" label={t("organization.name")}>
        {(control) => <Input readOnly={readOnly} autoComplete="organization" {...control} />}
      </Field>
      <div className="grid-2">
        <Field<Values> name="legalStatus" label={t("organization.legalStatus")}>
          {(control) => <Input readOnly={readOnly} {...control} />}
        </Field>
        <Field<Values> name="registrationNumber" label={t("organization.registrationNumber")}>
          {(control) => <Input readOnly={readOnly} spellCheck={false} {...control} />}
        </Field>
      </div>
      <Field<Values>
        name="employeeCount"
        label={t("organization.employeeCount")}
        hint={t("organization.employeeCountHint")}
      >
        {(control) => <Input readOnly={readOnly} inputMode="numeric" className="num max-w-40" {...control} />}
      </Field>
      <Field<Values> name="mission" label={t("organization.mission")} hint={t("organization.missionHint")}>
        {(control) => <Textarea readOnly={readOnly} {...control} />}
      </Field>
      <Field<Values>
        name="description"
        label={t("organization.description")}
        hint={t("organization.descriptionHint")}
        optional
      >
        {(control) => <Textarea readOnly={readOnly} className="min-h-28" {...control} />}
      </Field>
      <h2 className="mt-2 border-t border-line pt-6 text-lg">{t("organization.contactSection")}</h2>
      <Field<Values> name="email" label={t("organization.email")} hint={t("organization.emailHint")} optional>
        {(control) => <Input readOnly={readOnly} type="email" autoCapitalize="none" spellCheck={false} {...control} />}
      </Field>
      <div className="grid-2">
        <Field<Values> name="phone" label={t("organization.phone")} optional>
          {(control) => <Input readOnly={readOnly} type="tel" {...control} />}
        </Field>
        <Field<Values> name="location" label={t("organization.location")} optional>
          {(control) => <Input readOnly={readOnly} {...control} />}
        </Field>
      </div>
      <Field<Values> name="website" label={t("organization.website")} hint={t("organization.websiteHint")} optional>
        {(control) => <Input readOnly={readOnly} type="url" autoCapitalize="none" spellCheck={false} {...control} />}
      </Field>
      <h2 className="mt-2 border-t border-line pt-6 text-lg">{t("organization.workSection")}</h2>
      <HelpsWith readOnly={readOnly} />
      <Field<Values>
        name="serviceArea"
        label={t("organization.serviceArea")}
        hint={t("organization.serviceAreaHint")}
        optional
      >
        {(control) => <Textarea readOnly={readOnly} rows={4} {...control} />}
      </Field>
      <Field<Values> name="responseDays" label={t("organization.responseDays")} optional>
        {(control) => <Input readOnly={readOnly} inputMode="numeric" className="num max-w-40" {...control} />}
      </Field>
      <Field<Values>
        name="secondApprovalAbove"
        label={t("organization.secondApproval")}
        hint={t("organization.secondApprovalHint")}
        optional
      >
        {(control) => (
          <span className="affix money block max-w-60">
            <span aria-hidden="true">$</span>
            <Input readOnly={readOnly} inputMode="decimal" className="num" {...control} />
          </span>
        )}
      </Field>
      {readOnly ? null : (
        <Button
          type="submit"
          variant="primary"
          busy={save.isPending}
          busyLabel={t("common.saving")}
          className="sm:justify-self-start"
        >
          {t("organization.saveChanges")}
        </Button>
      )}
    </Form>
  );
}

/** The kinds of help that the organization offers, from the global list. */
function HelpsWith({ readOnly }: { readOnly: boolean }) {
  const { setValue } = useFormContext<Values>();
  const ticked = (useWatch<Values, "helpsWith">({ name: "helpsWith" }) ?? "").split(",").filter(Boolean);
  const kinds = useQuery(helpKindsQuery);
  const id = useId();
  if (!kinds.data || kinds.data.length === 0) return null;
  return (
    <div role="group" aria-labelledby={`${id}label`} aria-describedby={`${id}hint`}>
      <span id={`${id}label`} className="label">
        {t("organization.helpsWith")} <span className="opt">{t("common.optional")}</span>
      </span>
      <p id={`${id}hint`} className="hint">
        {t("organization.helpsWithHint")}
      </p>
      <div className="mt-2 grid gap-1">
        {kinds.data.map((kind) => (
          <TickLine
            key={kind.id}
            checked={ticked.includes(kind.id)}
            disabled={readOnly}
            onCheckedChange={(on) =>
              setValue(
                "helpsWith",
                // in the order in which the database keeps them
                (on === true ? [...ticked, kind.id] : ticked.filter((other) => other !== kind.id)).sort().join(),
                { shouldDirty: true },
              )
            }
          >
            {localName(kind.name)}
          </TickLine>
        ))}
      </div>
    </div>
  );
}
