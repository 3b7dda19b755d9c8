import { Navigate, useNavigate } from "react-router-dom";
import { FormPage } from "@/components/pages";
import { OnboardingForm } from "@/features/organizations/components/onboarding-form";
import { useSession, useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { paths } from "../../paths";

export function Component() {
  const user = useUser();
  const session = useSession();
  const navigate = useNavigate();
  if (session.organization) return <Navigate to={paths.nonprofitDashboard} replace />;
  return (
    <FormPage title={t("organization.onboardingTitle")} lead={t("organization.onboardingLead")}>
      <OnboardingForm
        userId={user.id}
        onFounded={async ({ name }) => {
          toast({ title: t("organization.createdTitle"), description: t("organization.createdBody", { name }) });
          await session.refresh();
          void navigate(paths.nonprofitDashboard, { replace: true });
        }}
        onAlreadyFounded={async () => {
          toast({ variant: "info", title: t("organization.alreadyHave") });
          await session.refresh();
          void navigate(paths.nonprofitDashboard, { replace: true });
        }}
      />
    </FormPage>
  );
}
