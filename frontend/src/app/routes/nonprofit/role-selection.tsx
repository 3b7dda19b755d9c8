import { useNavigate, useSearchParams } from "react-router-dom";
import { FormPage } from "@/components/pages";
import { RoleChoice } from "@/features/organizations/components/role-choice";
import { useSession, useUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/organization";
import { paths, safeNext } from "../../paths";

export function Component() {
  const user = useUser();
  const { refresh } = useSession();
  const navigate = useNavigate();
  const [search] = useSearchParams();
  return (
    <FormPage title={t("organization.roleTitle")} lead={t("organization.roleLead")}>
      <RoleChoice
        userId={user.id}
        current={user.nonprofitRole}
        onChosen={async () => {
          await refresh();
          void navigate(safeNext(search.get("next")) ?? paths.nonprofitDashboard);
        }}
      />
    </FormPage>
  );
}
