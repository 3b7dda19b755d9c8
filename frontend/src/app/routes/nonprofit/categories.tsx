import { DashboardPage } from "@/components/pages";
import { CategoriesEditor } from "@/features/help-categories/components/categories-editor";
import { can, useOrganization, useSession, useUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/helpCategories";

export function Component() {
  const session = useSession();
  const organization = useOrganization();
  const user = useUser();
  return (
    <DashboardPage title={t("helpCategories.title")} lead={t("helpCategories.lead", { name: organization.name })}>
      <CategoriesEditor nonprofitId={organization.id} userId={user.id} mayChange={can(session, "manage_categories")} />
    </DashboardPage>
  );
}
