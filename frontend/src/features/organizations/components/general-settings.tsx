import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, use, useMemo, useState } from "react";
import { useFormContext, useWatch } from "react-hook-form";
import { Field, Form, type FieldProps } from "@/components/form";
import { Button } from "@/components/ui/button";
import { TickLine } from "@/components/ui/checkbox";
import { Input, Textarea } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { useEditForm } from "@/lib/edit-form";
import { errorHint, errorMessage } from "@/lib/errors";
import { formatAmount, formatList, formatMoney } from "@/lib/format";
import { helpKindsQuery } from "@/lib/help-kinds-query";
import { localName } from "@/lib/local-name";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { parseDollars } from "@/schemas/amount";
import { organizationKeys, organizationQuery, useSaveOrganization, type OrganizationDetails } from "../api";
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
  secondApprovalAbove: details.secondApprovalAbove === null ? "" : formatAmount(details.secondApprovalAbove),
});

/** What a colleague wrote into fields that this person changed too. */
const TheirsContext = createContext<{ theirs: Partial<Values>; take: (name: keyof Values) => void }>({
  theirs: {},
  take: () => undefined,
});

const labelOf = (name: keyof Values) =>
  t(name === "secondApprovalAbove" ? "organization.secondApproval" : `organization.${name}`);

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
  const row = useMemo(() => settingsOf(details), [details]);
  const edit = useEditForm<Values>({
    row,
    keptAs: mayEdit ? `organization:${details.id}:${userId}` : null,
    resolver: zodResolver(settingsSchema),
    mode: "onTouched",
    shouldFocusError: false,
  });
  const { form } = edit;
  const [theirs, setTheirs] = useState<Partial<Values>>({});
  const save = useSaveOrganization(details.id);
  const cache = useQueryClient();
  /** Shows at the fields what a colleague wrote there meanwhile. */
  const showTheirs = async () => {
    await cache.invalidateQueries({ queryKey: organizationKeys.details(details.id) });
    const now = cache.getQueryData(organizationQuery(details.id).queryKey);
    const found = now ? edit.meet(settingsOf(now)) : {};
    setTheirs((shown) => ({ ...shown, ...found }));
    for (const name of Object.keys(found) as (keyof Values)[])
      form.setError(name, { message: t("organization.changedMeanwhile", { field: labelOf(name) }) });
  };
  const take = (name: keyof Values) => {
    form.setValue(name, theirs[name] ?? "");
    form.clearErrors(name);
    setTheirs(({ [name]: _taken, ...others }) => others);
  };
  const submit = async (values: Values) => {
    try {
      const { changed, seen, succeeded } = edit.attempt(values);
      await save.mutateAsync({ changed, seen });
      succeeded();
      setTheirs({});
      toast({ title: t("organization.savedTitle"), description: t("organization.savedBody") });
      await onSaved();
    } catch (error) {
      const meanwhile = errorHint(error) === "changed_meanwhile";
      if (meanwhile) await showTheirs();
      toast({
        variant: "destructive",
        title: t("organization.saveErrorTitle"),
        description: meanwhile ? errorMessage(error) : t("organization.saveError"),
      });
    }
  };
  const readOnly = !mayEdit;
  return (
    <TheirsContext value={{ theirs, take }}>
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
        <SettingsField name="name" label={t("organization.name")}>
          {(control) => <Input readOnly={readOnly} autoComplete="organization" {...control} />}
        </SettingsField>
        <div className="grid-2">
          <SettingsField name="legalStatus" label={t("organization.legalStatus")}>
            {(control) => <Input readOnly={readOnly} {...control} />}
          </SettingsField>
          <SettingsField name="registrationNumber" label={t("organization.registrationNumber")}>
            {(control) => <Input readOnly={readOnly} spellCheck={false} {...control} />}
          </SettingsField>
        </div>
        <SettingsField
          name="employeeCount"
          label={t("organization.employeeCount")}
          hint={t("organization.employeeCountHint")}
        >
          {(control) => <Input readOnly={readOnly} inputMode="numeric" className="num max-w-40" {...control} />}
        </SettingsField>
        <SettingsField name="mission" label={t("organization.mission")} hint={t("organization.missionHint")}>
          {(control) => <Textarea readOnly={readOnly} {...control} />}
        </SettingsField>
        <SettingsField
          name="description"
          label={t("organization.description")}
          hint={t("organization.descriptionHint")}
          optional
        >
          {(control) => <Textarea readOnly={readOnly} className="min-h-28" {...control} />}
        </SettingsField>
        <h2 className="mt-2 border-t border-line pt-6 text-lg">{t("organization.contactSection")}</h2>
        <SettingsField name="email" label={t("organization.email")} hint={t("organization.emailHint")} optional>
          {(control) => (
            <Input readOnly={readOnly} type="email" autoCapitalize="none" spellCheck={false} {...control} />
          )}
        </SettingsField>
        <div className="grid-2">
          <SettingsField name="phone" label={t("organization.phone")} optional>
            {(control) => <Input readOnly={readOnly} type="tel" {...control} />}
          </SettingsField>
          <SettingsField name="location" label={t("organization.location")} optional>
            {(control) => <Input readOnly={readOnly} {...control} />}
          </SettingsField>
        </div>
        <SettingsField name="website" label={t("organization.website")} hint={t("organization.websiteHint")} optional>
          {(control) => <Input readOnly={readOnly} type="url" autoCapitalize="none" spellCheck={false} {...control} />}
        </SettingsField>
        <h2 className="mt-2 border-t border-line pt-6 text-lg">{t("organization.workSection")}</h2>
        <HelpsWith readOnly={readOnly} />
        <SettingsField
          name="serviceArea"
          label={t("organization.serviceArea")}
          hint={t("organization.serviceAreaHint")}
          optional
        >
          {(control) => <Textarea readOnly={readOnly} rows={4} {...control} />}
        </SettingsField>
        <SettingsField name="responseDays" label={t("organization.responseDays")} optional>
          {(control) => <Input readOnly={readOnly} inputMode="numeric" className="num max-w-40" {...control} />}
        </SettingsField>
        <SettingsField
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
        </SettingsField>
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
    </TheirsContext>
  );
}

/** A field with a colleague's version below it, where there is one. */
function SettingsField({ children, ...props }: FieldProps<Values>) {
  return (
    <Field<Values> {...props}>
      {(control) => (
        <>
          {children(control)}
          <TheirVersion name={props.name} />
        </>
      )}
    </Field>
  );
}

/** Stays while the person types: they may want parts of both. */
function TheirVersion({ name }: { name: keyof Values }) {
  const { theirs, take } = use(TheirsContext);
  const kinds = useQuery(helpKindsQuery);
  const version = theirs[name];
  if (version === undefined) return null;
  const words =
    name === "helpsWith"
      ? formatList(
          version
            .split(",")
            .flatMap((id) => kinds.data?.find((kind) => kind.id === id)?.name ?? [])
            .map(localName),
        )
      : name === "secondApprovalAbove" && version !== ""
        ? formatMoney(parseDollars(version) ?? 0)
        : version;
  return (
    <Notice className="mt-2" title={t("organization.theirVersion")}>
      <p className="whitespace-pre-line wrap-anywhere">{words || t("organization.theirVersionEmpty")}</p>
      <Button
        className="mt-3"
        aria-label={t("organization.takeTheirsNamed", { field: labelOf(name) })}
        onClick={() => take(name)}
      >
        {t("organization.takeTheirs")}
      </Button>
    </Notice>
  );
}

/** The kinds of help that the organization offers, from the global list. */
function HelpsWith({ readOnly }: { readOnly: boolean }) {
  const { setValue } = useFormContext<Values>();
  const ticked = (useWatch<Values, "helpsWith">({ name: "helpsWith" }) ?? "").split(",").filter(Boolean);
  const kinds = useQuery(helpKindsQuery);
  if (!kinds.data || kinds.data.length === 0) return null;
  return (
    <SettingsField
      as="group"
      name="helpsWith"
      label={t("organization.helpsWith")}
      hint={t("organization.helpsWithHint")}
      optional
    >
      {(control) => (
        <div id={control.id} tabIndex={-1} className="mt-2 grid gap-1 outline-none">
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
      )}
    </SettingsField>
  );
}
