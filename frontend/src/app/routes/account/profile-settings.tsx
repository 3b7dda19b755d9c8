import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router-dom";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { FormSkeleton } from "@/components/states";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { profileQuery } from "@/features/account/api";
import { PasswordForm } from "@/features/account/password-form";
import { PhotoCard } from "@/features/account/photo-card";
import { ProfileForm } from "@/features/account/profile-form";
import { useUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/account";

export function Component() {
  const user = useUser();
  const profile = useQuery(profileQuery(user.id));
  const [search, setSearch] = useSearchParams();
  return (
    <DashboardPage title={t("account.settingsTitle")} lead={t("account.settingsLead")}>
      <Tabs
        value={search.get("tab") === "password" ? "password" : "information"}
        onValueChange={(tab) => setSearch(tab === "password" ? { tab } : {}, { replace: true })}
      >
        <TabsList aria-label={t("account.settingsTitle")}>
          <Tab value="information">{t("account.tabInformation")}</Tab>
          <Tab value="password">{t("account.tabPassword")}</Tab>
        </TabsList>
        <TabPanel value="information" className="max-w-(--width-form)">
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
