import { zodResolver } from "@hookform/resolvers/zod";
import { useMemo } from "react";
import { Link, useNavigate } from "react-router-dom";
import { Field, Form } from "@/components/form";
import { DashboardPage, SectionHead } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { useSaveMyProfile } from "@/features/account/api";
import { PrivacyPanel } from "@/features/account/privacy-panel";
import { myProfileSchema, type MyProfileForm } from "@/features/account/schema";
import { useEditForm } from "@/lib/edit-form";
import { errorMessage } from "@/lib/errors";
import { useSession, useUser, type NonprofitRole } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t, type MessageKey } from "@/messages";
import "@/messages/en/account";
import { paths } from "../../paths";

const teamRoles: Record<NonprofitRole, MessageKey> = {
  admin: "account.teamAdmin",
  manager: "account.teamManager",
  employee: "account.teamEmployee",
  volunteer: "account.teamVolunteer",
};

const userRoles = {
  nonprofit: "account.userRoleNonprofit",
  requester: "account.userRoleRequester",
  donor: "account.userRoleDonor",
} as const;

function AccountInformation() {
  const { organization } = useSession();
  const user = useUser();
  const organizationRole = organization?.role ?? user.nonprofitRole;
  const rows = [
    [t("account.userRole"), t(userRoles[user.role ?? "requester"])],
    [t("account.organizationRole"), organizationRole ? t(teamRoles[organizationRole]) : t("account.notAvailable")],
    [t("account.accountCreated"), t("account.notAvailable")],
  ] as const;
  return (
    <section aria-labelledby="account-information">
      <SectionHead id="account-information" title={t("account.accountInformation")} />
      <dl className="answers tight">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd className="first-letter:uppercase">{value}</dd>
          </div>
        ))}
      </dl>
      <div className="actions mt-5">
        <Button asChild>
          <Link to={`${paths.profileSettings}?tab=password`}>{t("account.changePassword")}</Link>
        </Button>
        <Button asChild variant="quiet">
          <Link to={paths.profileSettings}>{t("account.allSettings")}</Link>
        </Button>
      </div>
    </section>
  );
}

/** The stored personal data: download and deletion. */
function YourData() {
  const user = useUser();
  const { signOut } = useSession();
  const navigate = useNavigate();
  return (
    <PrivacyPanel
      email={user.email}
      onClosed={async () => {
        // the same target as this page's guard, whichever comes first
        await signOut();
        toast({ title: t("account.closed"), description: t("account.closedBody", { email: user.email }) });
        await navigate(paths.login, { replace: true });
      }}
    />
  );
}

export function Component() {
  const user = useUser();
  const save = useSaveMyProfile(user.id);
  const { fullName, email, phoneNumber } = user;
  const row = useMemo(() => ({ fullName, email, phoneNumber }), [fullName, email, phoneNumber]);
  const { form, attempt } = useEditForm<MyProfileForm>({
    row,
    keptAs: `my-profile-${user.id}`,
    resolver: zodResolver(myProfileSchema),
    mode: "onTouched",
    shouldFocusError: false,
  });
  return (
    <DashboardPage title={t("account.profileTitle")} lead={t("account.profileLead")}>
      <div className="max-w-(--width-form)">
        <Form
          form={form}
          error={save.error}
          errorTitle={t("account.updateFailed")}
          onSubmit={(values) => {
            const { changed, succeeded } = attempt(values);
            save.mutate(changed, {
              onSuccess: () => {
                succeeded();
                toast({ title: t("account.updated"), description: t("account.updatedBody") });
              },
              onError: (error) =>
                toast({
                  variant: "destructive",
                  title: t("account.updateFailed"),
                  description: errorMessage(error, "account.updateFailedBody"),
                }),
            });
          }}
        >
          <Field name="fullName" label={t("account.fullName")}>
            {(control) => <Input autoComplete="name" {...control} />}
          </Field>
          <Field name="email" label={t("account.email")} hint={t("account.emailHint")}>
            {(control) => <Input type="email" readOnly {...control} />}
          </Field>
          <Field name="phoneNumber" label={t("account.phone")} optional>
            {(control) => <Input type="tel" autoComplete="tel" {...control} />}
          </Field>
          <div className="actions">
            <Button type="submit" variant="primary" busy={save.isPending} busyLabel={t("common.saving")}>
              {t("account.saveChanges")}
            </Button>
          </div>
        </Form>
      </div>
      <div className="max-w-(--width-form)">
        <AccountInformation />
      </div>
      <div className="max-w-(--width-form)">
        <YourData />
      </div>
    </DashboardPage>
  );
}
