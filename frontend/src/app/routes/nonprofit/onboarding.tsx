import { Navigate, useNavigate, useSearchParams } from "react-router-dom";
import { FormPage } from "@/components/pages";
import { OnboardingForm } from "@/features/organizations/components/onboarding-form";
import { useSession, useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { paths, safeNext } from "../../paths";

export function Component() {
  const user = useUser();
  const session = useSession();
  const navigate = useNavigate();
  const [search] = useSearchParams();
  const after = safeNext(search.get("next")) ?? paths.nonprofitDashboard;
  if (session.organization) return <Navigate to={after} replace />;
  return (
    <FormPage title={t("organization.onboardingTitle")} lead={t("organization.onboardingLead")}>
      <OnboardingForm
        userId={user.id}
        onFounded={async ({ name }) => {
          toast({ title: t("organization.createdTitle"), description: t("organization.createdBody", { name }) });
          await session.refresh();
          void navigate(after, { replace: true });
        }}
        onAlreadyFounded={async () => {
          toast({ variant: "info", title: t("organization.alreadyHave") });
          await session.refresh();
          void navigate(after, { replace: true });
        }}
      />
    </FormPage>
  );
}
