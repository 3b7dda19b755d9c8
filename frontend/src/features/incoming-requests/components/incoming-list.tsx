import { useQuery } from "@tanstack/react-query";
import { UserRound } from "lucide-react";
import { useQueryStates } from "nuqs";
import { Pagination } from "@/components/pagination";
import { QueryView } from "@/components/query-view";
import { SearchField } from "@/components/search-field";
import { EmptyState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Tab, Tabs, TabsList } from "@/components/ui/tabs";
import { formatNumber } from "@/lib/format";
import { pushing, replacing } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { incomingListQuery } from "../api";
import {
  changeFilters,
  filterAddress,
  filterParsers,
  isFiltered,
  PAGE_SIZE,
  statusFilters,
  type SortKey,
  type IncomingFilters,
} from "../filters";
import { IncomingTable } from "./incoming-table";

const tabWords = {
  all: "incoming.tabAll",
  pending: "incoming.tabPending",
  processing: "incoming.tabProcessing",
  approved: "incoming.tabApproved",
  declined: "incoming.tabDeclined",
} as const;

/** The list's filters, kept in the address bar. */
export function useIncomingFilters() {
  const [filters, setFilters] = useQueryStates(filterParsers, filterAddress);
  const set = (change: Partial<IncomingFilters>, replace = false) =>
    void setFilters(changeFilters(filters, change), replace ? replacing : pushing);
  return { filters, set };
}

/** Limits the list to the reader's assigned requests. */
export function MineFilter() {
  const { filters, set } = useIncomingFilters();
  return (
    <Button className="mine" aria-pressed={filters.mine} onClick={() => set({ mine: !filters.mine })}>
      <UserRound aria-hidden="true" />
      {t("incoming.mine")}
    </Button>
  );
}

export interface IncomingListProps {
  nonprofitId: string;
  organizationName: string;
  mayDecide: boolean;
  href: (requestId: string) => string;
}

/** Search, tabs, table and pages, all part of the URL. */
export function IncomingList({ nonprofitId, organizationName, mayDecide, href }: IncomingListProps) {
  const { filters, set } = useIncomingFilters();
  const list = useQuery(incomingListQuery(nonprofitId, filters));
  const counts = list.data?.counts;
  /** Pending and not waiting for the person; only these are amber. */
  const due = (counts?.due ?? 0) - (counts?.processing ?? 0);
  return (
    <div>
      <div className="tools">
        <Tabs
          value={filters.status}
          onValueChange={(status) => set({ status: status as IncomingFilters["status"] })}
          activationMode="manual"
        >
          <TabsList aria-label={t("incoming.tabsLabel")}>
            {statusFilters.map((status) => (
              <Tab
                key={status}
                value={status}
                count={counts?.[status]}
                hot={mayDecide && status === "pending" && due > 0}
                aria-controls="incoming-list"
              >
                {t(tabWords[status])}
              </Tab>
            ))}
          </TabsList>
        </Tabs>
        <SearchField
          aria-label={t("incoming.searchLabel")}
          placeholder={t("incoming.searchHint")}
          value={filters.search}
          onSearch={(search) => set({ search }, true)}
        />
      </div>
      <div id="incoming-list" role="tabpanel" aria-label={t(tabWords[filters.status])} className="mt-4 grid gap-4">
        <QueryView
          query={list}
          failedTitle={t("incoming.failed")}
          isEmpty={({ rows }) => rows.length === 0}
          empty={
            isFiltered(filters) || filters.page > 1 ? (
              <EmptyState
                title={t("incoming.emptyTitle")}
                actions={
                  <Button onClick={() => set({ status: "all", search: "", mine: false })}>
                    {t("incoming.clearFilters")}
                  </Button>
                }
              >
                {t("incoming.emptyFiltered")}
              </EmptyState>
            ) : (
              <EmptyState title={t("incoming.emptyTitle")}>{t("incoming.emptyFirst")}</EmptyState>
            )
          }
        >
          {({ rows, total, more }) => (
            <>
              <IncomingTable
                rows={rows}
                caption={t("incoming.tableCaption", { name: organizationName })}
                href={href}
                mayDecide={mayDecide}
                sort={filters.sort ?? undefined}
                onSort={({ key, direction }) => set({ sort: { key: key as SortKey, direction } })}
              />
              <Pagination
                page={filters.page}
                pageSize={PAGE_SIZE}
                total={total}
                onPage={(page) => {
                  set({ page });
                  document.getElementById("main")?.scrollIntoView();
                }}
                summary={t(more ? "incoming.rangeMore" : "incoming.range", {
                  from: formatNumber((filters.page - 1) * PAGE_SIZE + 1),
                  to: formatNumber(Math.min(total, filters.page * PAGE_SIZE)),
                  total: formatNumber(total),
                  count: total,
                })}
              />
            </>
          )}
        </QueryView>
      </div>
    </div>
  );
}
