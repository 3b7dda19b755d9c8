import { useQuery } from "@tanstack/react-query";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { FormSkeleton } from "@/components/states";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { profileQuery } from "@/features/account/api";
import { PasswordForm } from "@/features/account/password-form";
import { PhotoCard } from "@/features/account/photo-card";
import { ProfileForm } from "@/features/account/profile-form";
import { useUser } from "@/lib/session";
import { useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/account";

const tabs = ["information", "password"] as const;

export function Component() {
  const user = useUser();
  const profile = useQuery(profileQuery(user.id));
  const [tab, setTab] = useTab(tabs);
  return (
    <DashboardPage title={t("account.settingsTitle")} lead={t("account.settingsLead")}>
      <Tabs value={tab} onValueChange={setTab}>
        <TabsList aria-label={t("account.settingsTitle")}>
          <Tab value="information">{t("account.tabInformation")}</Tab>
          <Tab value="password">{t("account.tabPassword")}</Tab>
        </TabsList>
        {/* stays while the other tab is shown, for the ID number, which is kept nowhere else */}
        <TabPanel value="information" forceMount className="max-w-(--width-form) data-[state=inactive]:hidden">
          <QueryView
            query={profile}
            failedTitle={t("account.profileNotLoaded")}
            loading={<FormSkeleton photo fields={5} />}
          >
            {(data) => (
              <div className="grid gap-8">
                <PhotoCard user={user} photoPath={data.photo_path} />
                <ProfileForm profile={data} />
              </div>
            )}
          </QueryView>
        </TabPanel>
        <TabPanel value="password" className="max-w-(--width-form)">
          <PasswordForm email={user.email} />
        </TabPanel>
      </Tabs>
    </DashboardPage>
  );
}
