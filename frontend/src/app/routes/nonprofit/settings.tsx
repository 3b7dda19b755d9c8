import { usePrefetchQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link, useNavigate } from "react-router-dom";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { FormSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { CategoriesEditor } from "@/features/help-categories/components/categories-editor";
import { organizationQuery } from "@/features/organizations/api";
import { BrandingSettings } from "@/features/organizations/components/branding-settings";
import { CloseOrganization } from "@/features/organizations/components/close-organization";
import { GeneralSettings } from "@/features/organizations/components/general-settings";
import { helpKindsQuery } from "@/lib/help-kinds-query";
import { can, useOrganization, useSession, useUser } from "@/lib/session";
import { useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/organization";
import { paths } from "../../paths";

const tabs = ["general", "branding", "categories"] as const;

export function Component() {
  const session = useSession();
  const organization = useOrganization();
  const user = useUser();
  const navigate = useNavigate();
  const [tab, setTab] = useTab(tabs);
  const query = useQuery(organizationQuery(organization.id));
  usePrefetchQuery(helpKindsQuery);
  const mayEdit = can(session, "edit_organization");
  // Only after this page has left the screen, which on a slow phone is later than the end of the navigation: its guard
  // would report the missing organization.
  const closed = useRef(false);
  const { refresh } = session;
  useEffect(
    () => () => {
      if (closed.current) void refresh();
    },
    [refresh],
  );
  return (
    <DashboardPage
      title={t("organization.settingsTitle")}
      lead={t("organization.settingsLead", { name: organization.name })}
      action={
        <Button asChild className="wide-only">
          <Link to={paths.nonprofitProfile(organization.id)}>{t("organization.publicPage")}</Link>
        </Button>
      }
    >
      <Tabs value={tab} onValueChange={setTab}>
        <TabsList aria-label={t("organization.tabsLabel")}>
          <Tab value="general">{t("organization.tabGeneral")}</Tab>
          <Tab value="branding">{t("organization.tabBranding")}</Tab>
          <Tab value="categories">{t("organization.tabCategories")}</Tab>
        </TabsList>
        <TabPanel value="general">
          <QueryView query={query} failedTitle={t("organization.settingsFailed")} loading={<FormSkeleton fields={5} />}>
            {(details) => (
              <>
                <GeneralSettings details={details} userId={user.id} mayEdit={mayEdit} onSaved={session.refresh} />
                {mayEdit ? (
                  <CloseOrganization
                    details={details}
                    onClosed={() => {
                      closed.current = true;
                      void navigate(paths.nonprofitDashboard, { replace: true });
                    }}
                  />
                ) : null}
              </>
            )}
          </QueryView>
        </TabPanel>
        <TabPanel value="branding">
          <QueryView query={query} failedTitle={t("organization.settingsFailed")} loading={<FormSkeleton fields={1} />}>
            {(details) => <BrandingSettings details={details} mayEdit={mayEdit} />}
          </QueryView>
        </TabPanel>
        <TabPanel value="categories">
          {mayEdit ? null : (
            <Notice tone="info" className="mb-6">
              {t("organization.readOnlyCategories")}
            </Notice>
          )}
          <CategoriesEditor nonprofitId={organization.id} userId={user.id} mayChange={mayEdit} lenient />
        </TabPanel>
      </Tabs>
    </DashboardPage>
  );
}
