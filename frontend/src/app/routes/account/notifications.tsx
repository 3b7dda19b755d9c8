import { useInfiniteQuery } from "@tanstack/react-query";
import { CheckCheck } from "lucide-react";
import { LetterArt } from "@/components/art/letter";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { EmptyState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { notificationsQuery, useMarkAllRead, useNotificationCounts } from "@/features/notifications/api";
import { NotificationItem } from "@/features/notifications/notification-item";
import { errorMessage } from "@/lib/errors";
import { useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/account";

const tabs = ["all", "unread", "read"] as const;

const emptyBody = {
  all: "account.noneBody",
  unread: "account.noneUnreadBody",
  read: "account.noneReadBody",
} as const;
const tabWords = { all: "account.tabAll", unread: "account.tabUnread", read: "account.tabRead" } as const;

export function Component() {
  const user = useUser();
  const [tab, setTab] = useTab(tabs);
  const query = useInfiniteQuery(notificationsQuery(user.id, tab));
  const counts = useNotificationCounts(user.id);
  const markAll = useMarkAllRead();
  // a new notification has the pages read again, which ends the reading of the next one: then it is read after that
  const showOlder = async (shown: number) => {
    for (let attempt = 0; attempt < 4; attempt++) {
      const { data, isError, hasNextPage } = await query.fetchNextPage({ cancelRefetch: false });
      if (isError || !hasNextPage || (data?.length ?? 0) > shown) return;
    }
  };
  return (
    <DashboardPage
      title={t("account.notificationsTitle")}
      lead={t("account.notificationsLead")}
      action={
        counts && counts.unread > 0 ? (
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
            <Tab key={name} value={name} count={counts?.[name]} hot={name === "unread"}>
              {t(tabWords[name])}
            </Tab>
          ))}
        </TabsList>
        <TabPanel value={tab}>
          <QueryView
            query={query}
            failedTitle={t("account.notificationsNotLoaded")}
            empty={
              <EmptyState art={LetterArt} title={t("account.none")} className="[&_.art]:w-16">
                {t(emptyBody[tab])}
              </EmptyState>
            }
          >
            {(items) => (
              <>
                <ul className="list ruled">
                  {items.map((item) => (
                    <NotificationItem key={item.id} item={item} />
                  ))}
                </ul>
                {query.hasNextPage ? (
                  <Button className="mt-4" busy={query.isFetchingNextPage} onClick={() => void showOlder(items.length)}>
                    {t("account.showOlder")}
                  </Button>
                ) : null}
              </>
            )}
          </QueryView>
        </TabPanel>
      </Tabs>
    </DashboardPage>
  );
}
