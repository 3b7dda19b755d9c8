import { useQuery } from "@tanstack/react-query";
import { HandHeart } from "lucide-react";
import { parseAsString, useQueryStates } from "nuqs";
import { useEffect } from "react";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { FiguresSkeleton, ListSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { donorDashboardQuery, donorMessageQuery, useMarkMessageRead } from "@/features/donations/api";
import { MessageDialog } from "@/features/donations/components/message-dialog";
import { DonorGifts, DonorImpact, DonorOverview } from "@/features/donations/components/panels";
import { PledgeContent } from "@/features/pledges/pledge-dialog";
import { firstName } from "@/lib/format";
import { useUser } from "@/lib/session";
import { parseAsMark, replacing, useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/donations";

const tabs = ["overview", "donations", "impact"] as const;
/** The open dialog, one at a time. */
const dialogs = { message: parseAsString, donate: parseAsMark };

export function Component() {
  const user = useUser();
  const query = useQuery(donorDashboardQuery(user.id));
  const mark = useMarkMessageRead(user.id);
  const [tab, setTab] = useTab(tabs);
  const [{ message: readId, donate: pledging }, show] = useQueryStates(dialogs, replacing);
  const openPledge = () => void show({ donate: true, message: null });
  const close = () => void show(null);
  const listed = query.data?.messages.find((message) => message.id === readId);
  // an older message, linked from a mail or notification
  const older = useQuery({
    ...donorMessageQuery(user.id, readId ?? ""),
    enabled: readId !== null && query.isSuccess && listed === undefined,
  });
  const read = listed ?? (readId === null ? undefined : (older.data ?? undefined));
  const { mutate: markRead } = mark;
  const newId = read?.unread ? read.id : null;
  // opened from the list or by a link
  useEffect(() => {
    if (newId !== null) markRead(newId);
  }, [newId, markRead]);
  const name = firstName(user.fullName);
  return (
    <DashboardPage
      title={t("donations.title")}
      lead={name ? t("donations.hello", { name }) : t("donations.helloPlain")}
      action={
        <Button variant="primary" onClick={openPledge}>
          <HandHeart aria-hidden="true" />
          {t("donations.make")}
        </Button>
      }
    >
      <Tabs value={tab} onValueChange={setTab}>
        <TabsList aria-label={t("donations.tabsLabel")}>
          <Tab value="overview">{t("donations.tabOverview")}</Tab>
          <Tab value="donations">{t("donations.tabDonations")}</Tab>
          <Tab value="impact">{t("donations.tabImpact")}</Tab>
        </TabsList>
        <TabPanel value={tab}>
          <QueryView
            query={query}
            failedTitle={t("donations.failed")}
            loading={
              <>
                <FiguresSkeleton count={3} />
                <ListSkeleton rows={3} />
              </>
            }
          >
            {(data) => {
              const donate = <Button onClick={openPledge}>{t("donations.make")}</Button>;
              switch (tab) {
                case "overview":
                  return (
                    <DonorOverview
                      data={data}
                      donate={donate}
                      onSeeAll={() => setTab("donations")}
                      onRead={(message) => void show({ message: message.id })}
                    />
                  );
                case "donations":
                  return <DonorGifts data={data} donate={donate} />;
                case "impact":
                  return <DonorImpact data={data} />;
              }
            }}
          </QueryView>
        </TabPanel>
      </Tabs>
      <Dialog open={pledging === true} onOpenChange={(open) => (open ? undefined : close())}>
        {pledging ? <PledgeContent donor={user} /> : null}
      </Dialog>
      <Dialog open={read !== undefined} onOpenChange={(open) => (open ? undefined : close())}>
        {read ? <MessageDialog key={read.id} message={read} userId={user.id} onClose={close} /> : null}
      </Dialog>
    </DashboardPage>
  );
}
