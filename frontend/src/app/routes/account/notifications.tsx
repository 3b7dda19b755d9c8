import { useQuery } from "@tanstack/react-query";
import { CheckCheck } from "lucide-react";
import { LetterArt } from "@/components/art/letter";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { EmptyState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { notificationsQuery, useMarkAllRead, type Notification } from "@/features/notifications/api";
import { NotificationItem } from "@/features/notifications/notification-item";
import { errorMessage } from "@/lib/errors";
import { useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/account";

const tabs = ["all", "unread", "read"] as const;
type TabName = (typeof tabs)[number];

const emptyBody = {
  all: "account.noneBody",
  unread: "account.noneUnreadBody",
  read: "account.noneReadBody",
} as const;
const tabWords = { all: "account.tabAll", unread: "account.tabUnread", read: "account.tabRead" } as const;

const chosen = (items: readonly Notification[], tab: TabName) =>
  tab === "all" ? items : items.filter((item) => item.read === (tab === "read"));

export function Component() {
  const user = useUser();
  const query = useQuery(notificationsQuery(user.id));
  const markAll = useMarkAllRead();
  const [tab, setTab] = useTab(tabs);
  const items = query.data ?? [];
  const unread = chosen(items, "unread").length;
  return (
    <DashboardPage
      title={t("account.notificationsTitle")}
      lead={t("account.notificationsLead")}
      action={
        unread > 0 ? (
          <Button
            busy={markAll.isPending}
            onClick={() =>
              markAll.mutate(undefined, {
                onError: (error) =>
                  toast({ variant: "destructive", title: t("account.changeFailed"), description: errorMessage(error) }),
              })
            }
          >
            <CheckCheck aria-hidden="true" />
            {t("account.markAllRead")}
          </Button>
        ) : null
      }
    >
      <Tabs value={tab} onValueChange={setTab}>
        <TabsList aria-label={t("account.notificationsTitle")}>
          {tabs.map((name) => (
            <Tab
              key={name}
              value={name}
              count={query.data ? chosen(items, name).length : undefined}
              hot={name === "unread"}
            >
              {t(tabWords[name])}
            </Tab>
          ))}
        </TabsList>
        <TabPanel value={tab}>
          <QueryView
            query={query}
            failedTitle={t("account.notificationsNotLoaded")}
            isEmpty={(data) => chosen(data, tab).length === 0}
            empty={
              <EmptyState art={LetterArt} title={t("account.none")} className="[&_.art]:w-16">
                {t(emptyBody[tab])}
              </EmptyState>
            }
          >
            {(data) => (
              <ul className="list ruled">
                {chosen(data, tab).map((item) => (
                  <NotificationItem key={item.id} item={item} />
                ))}
              </ul>
            )}
          </QueryView>
        </TabPanel>
      </Tabs>
    </DashboardPage>
  );
}
