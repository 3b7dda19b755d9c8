import { useQuery } from "@tanstack/react-query";
import { HandHeart } from "lucide-react";
import { useEffect } from "react";
import { useSearchParams } from "react-router-dom";
import { DashboardPage } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { FiguresSkeleton, ListSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { donorDashboardQuery, useMarkMessageRead } from "@/features/donations/api";
import { MessageDialog } from "@/features/donations/components/message-dialog";
import { DonorGifts, DonorImpact, DonorOverview } from "@/features/donations/components/panels";
import { PledgeContent } from "@/features/pledges/pledge-dialog";
import { firstName } from "@/lib/format";
import { useUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/donations";

const tabs = ["overview", "donations", "impact"] as const;

export function Component() {
  const user = useUser();
  const query = useQuery(donorDashboardQuery(user.id));
  const mark = useMarkMessageRead(user.id);
  const [params, setParams] = useSearchParams();
  const tab = tabs.find((known) => known === params.get("tab")) ?? "overview";
  const readId = params.get("message");
  const pledging = params.get("donate") !== null;
  const show = (next: Record<string, string>) => setParams(next, { replace: true, preventScrollReset: true });
  const tabParams: Record<string, string> = tab === "overview" ? {} : { tab };
  const openPledge = () => show({ ...tabParams, donate: "" });
  const read = query.data?.messages.find((message) => message.id === readId);
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
      <Tabs value={tab} onValueChange={(next) => show(next === "overview" ? {} : { tab: next })}>
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
                      onSeeAll={() => show({ tab: "donations" })}
                      onRead={(message) => show({ message: message.id })}
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
      <Dialog open={pledging} onOpenChange={(open) => (open ? undefined : show(tabParams))}>
        {pledging ? <PledgeContent donor={user} /> : null}
      </Dialog>
      <Dialog open={read !== undefined} onOpenChange={(open) => (open ? undefined : show(tabParams))}>
        {read ? <MessageDialog key={read.id} message={read} userId={user.id} onClose={() => show(tabParams)} /> : null}
      </Dialog>
    </DashboardPage>
  );
}
