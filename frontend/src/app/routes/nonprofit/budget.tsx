import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useQueryState } from "nuqs";
import { useState } from "react";
import { Link } from "react-router-dom";
import { DashboardPage, SectionHead } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { FiguresSkeleton, FormSkeleton, ListSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Tab, TabPanel, Tabs, TabsList } from "@/components/ui/tabs";
import { budgetQuery, type Grant } from "@/features/budget/api";
import { AllocationsForm } from "@/features/budget/components/allocations-form";
import { DonationDialog, PayoutDialog } from "@/features/budget/components/entry-dialogs";
import { BudgetFigures, SpendingByCategory } from "@/features/budget/components/figures";
import { Donations, Payouts, Transactions } from "@/features/budget/components/ledgers";
import { helpCategoriesQuery } from "@/features/help-categories/api";
import { useOrganization, useUser } from "@/lib/session";
import { parseAsMark, replacing, useTab } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/budget";
import "@/messages/en/helpCategories";
import { paths } from "../../paths";

const tabs = ["transactions", "donations", "payouts"] as const;

const headings = {
  transactions: "budget.transactions",
  donations: "budget.tabDonations",
  payouts: "budget.tabPayouts",
} as const;

type Entry = { kind: "donation" } | { kind: "payout"; grant: Grant };

export function Component() {
  const organization = useOrganization();
  const user = useUser();
  const query = useQuery(budgetQuery(organization.id));
  const categories = useQuery(helpCategoriesQuery(organization.id));
  const [tab, setTab] = useTab(tabs);
  /** Allocations are edited in the page, because they are too many fields for a dialog. */
  const [changing, setChanging] = useQueryState("allocations", parseAsMark.withOptions(replacing));
  const [entry, setEntry] = useState<Entry | null>(null);
  const close = () => setEntry(null);
  const endChanging = () => void setChanging(null);
  const lists = { nonprofitId: organization.id, organizationName: organization.name };
  return (
    <DashboardPage
      title={t("budget.title")}
      lead={t("budget.lead", { name: organization.name })}
      action={
        <Button variant="primary" onClick={() => setEntry({ kind: "donation" })}>
          <Plus aria-hidden="true" />
          {t("budget.recordDonation")}
        </Button>
      }
    >
      <QueryView
        query={query}
        failedTitle={t("budget.loadFailed")}
        loading={
          <>
            <FiguresSkeleton />
            <ListSkeleton rows={3} />
          </>
        }
      >
        {(budget) => (
          <>
            <BudgetFigures budget={budget} />
            {changing ? (
              <>
                <QueryView
                  query={categories}
                  failedTitle={t("helpCategories.loadError")}
                  loading={<FormSkeleton fields={3} />}
                >
                  {(kinds) => (
                    <AllocationsForm
                      nonprofitId={organization.id}
                      userId={user.id}
                      spending={budget.spendingByCategory}
                      categories={kinds.map((kind) => kind.name)}
                      onClose={endChanging}
                    />
                  )}
                </QueryView>
                {/* the form has its own */}
                {categories.data ? null : (
                  <Button className="justify-self-start" onClick={endChanging}>
                    {t("common.cancel")}
                  </Button>
                )}
              </>
            ) : (
              <SpendingByCategory budget={budget} onChange={() => void setChanging(true)} />
            )}
          </>
        )}
      </QueryView>
      {/* when the whole page failed, one 'Try again' is enough */}
      {query.isError && !query.data ? null : (
        <section>
          <SectionHead title={t(headings[tab])}>
            <Button asChild variant="quiet">
              <Link to={paths.donorCommunication}>{t("budget.writeToDonors")}</Link>
            </Button>
          </SectionHead>
          <Tabs value={tab} onValueChange={setTab}>
            <TabsList aria-label={t("budget.tabsLabel")}>
              <Tab value="transactions">{t("budget.tabTransactions")}</Tab>
              <Tab value="donations">{t("budget.tabDonations")}</Tab>
              <Tab value="payouts">{t("budget.tabPayouts")}</Tab>
            </TabsList>
            <TabPanel value="transactions">
              <Transactions {...lists} />
            </TabPanel>
            <TabPanel value="donations">
              <Donations {...lists} />
            </TabPanel>
            <TabPanel value="payouts">
              <Payouts nonprofitId={organization.id} onPay={(grant) => setEntry({ kind: "payout", grant })} />
            </TabPanel>
          </Tabs>
        </section>
      )}
      <Dialog open={entry !== null} onOpenChange={(open) => (open ? undefined : close())}>
        {entry?.kind === "donation" ? (
          <DonationDialog nonprofitId={organization.id} userId={user.id} onClose={close} />
        ) : null}
        {entry?.kind === "payout" ? (
          <PayoutDialog nonprofitId={organization.id} userId={user.id} grant={entry.grant} onClose={close} />
        ) : null}
      </Dialog>
    </DashboardPage>
  );
}
