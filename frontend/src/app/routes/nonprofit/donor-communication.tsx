import { useQuery } from "@tanstack/react-query";
import { DashboardPage } from "@/components/pages";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { activeDonorsQuery, unreadAnswersQuery } from "@/features/donor-messages/api";
import { ComposeForm } from "@/features/donor-messages/components/compose-form";
import { Inbox, Sent } from "@/features/donor-messages/components/message-lists";
import { useOrganization, useUser } from "@/lib/session";
import { useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/donorMessages";

const tabs = ["compose", "inbox", "sent"] as const;

export function Component() {
  const organization = useOrganization();
  const user = useUser();
  const [tab, show] = useTab(tabs);
  const donors = useQuery(activeDonorsQuery(organization.id));
  const unread = useQuery(unreadAnswersQuery(organization.id));
  return (
    <DashboardPage
      title={t("donorMessages.title")}
      lead={
        donors.data === undefined
          ? null
          : donors.data === 0
            ? t("donorMessages.leadNone")
            : t("donorMessages.lead", { count: donors.data })
      }
    >
      <Tabs value={tab} onValueChange={show}>
        <TabsList aria-label={t("donorMessages.tabsLabel")}>
          <Tab value="compose">{t("donorMessages.tabCompose")}</Tab>
          <Tab value="inbox" count={unread.data ? unread.data : undefined} hot>
            {t("donorMessages.tabInbox")}
          </Tab>
          <Tab value="sent">{t("donorMessages.tabSent")}</Tab>
        </TabsList>
        <TabPanel value="compose">
          <ComposeForm nonprofitId={organization.id} userId={user.id} onSent={() => show("sent")} />
        </TabPanel>
        <TabPanel value="inbox">
          <Inbox nonprofitId={organization.id} onCompose={() => show("compose")} />
        </TabPanel>
        <TabPanel value="sent">
          <Sent nonprofitId={organization.id} onCompose={() => show("compose")} />
        </TabPanel>
      </Tabs>
    </DashboardPage>
  );
}
