import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { DateRangePicker } from "@/components/date-range-picker";
import { DashboardPage } from "@/components/pages";
import { Pagination } from "@/components/pagination";
import { QueryView } from "@/components/query-view";
import { SearchField } from "@/components/search-field";
import { EmptyState, ListSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Label } from "@/components/ui/label";
import { useUser } from "@/lib/session";
import { pushing, replacing } from "@/lib/url-state";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import "@/styles/requests.css";
import { dashboardQuery, PAGE_SIZE, requestsQuery } from "../api";
import { changeFilters, isFiltered, useRequestFilters, type RequestFilters } from "../filters";
import { DraftsHint } from "./dashboard-screen";
import { StatusAndCategory } from "./filter-fields";
import { RequestList } from "./request-list";
import { NewRequest } from "./new-request";

/**
 * All sent requests of the caller: searched, filtered and paginated on the server, with the filters in the URL.
 * `notice` is shown below.
 */
export function MyRequestsScreen({ notice }: { notice?: ReactNode }) {
  const user = useUser();
  const [filters, setFilters] = useRequestFilters();
  const requests = useQuery(requestsQuery(user.id, filters));
  const dashboard = useQuery(dashboardQuery(user.id));
  const change = (patch: Partial<RequestFilters>) => void setFilters(changeFilters(filters, patch), replacing);
  const clear = () => void setFilters(null, replacing);
  const filtered = isFiltered(filters);
  const first = requests.data?.total === 0 && !filtered && filters.page === 1;
  return (
    <DashboardPage title={t("myRequests.title")} action={<NewRequest variant={first ? "plain" : "primary"} />}>
      <search className="filters row4">
        <div className="field all">
          <Label htmlFor="requests-search">{t("myRequests.search")}</Label>
          <SearchField
            id="requests-search"
            placeholder={t("myRequests.searchHint")}
            value={filters.search}
            autoComplete="off"
            onSearch={(search) => change({ search })}
          />
        </div>
        <StatusAndCategory filters={filters} onChange={change} />
        <div className="field all">
          <Label htmlFor="requests-dates">{t("myRequests.dates")}</Label>
          <DateRangePicker
            id="requests-dates"
            value={{ from: filters.from ?? undefined, to: filters.to ?? undefined }}
            onChange={({ from, to }) => change({ from: from ?? null, to: to ?? null })}
          />
        </div>
      </search>
      <section aria-labelledby="results" aria-busy={requests.isFetching}>
        <div className="section-head">
          <h2
            id="results"
            className={requests.isError && !requests.data ? "visually-hidden" : "text-base"}
            aria-live="polite"
          >
            {requests.data
              ? t("myRequests.count", { count: requests.data.total })
              : requests.isError
                ? t("myRequests.title")
                : t("myRequests.loading")}
          </h2>
          {filtered ? (
            <Button variant="quiet" className="-me-3" onClick={clear}>
              {t("myRequests.clearFilters")}
            </Button>
          ) : null}
        </div>
        <QueryView
          query={requests}
          loading={<ListSkeleton rows={6} label={t("myRequests.loading")} />}
          failedTitle={t("myRequests.failedTitle")}
          isEmpty={({ rows }) => rows.length === 0}
          empty={
            filtered || filters.page > 1 ? (
              <EmptyState
                title={t("myRequests.noneFound")}
                heading="h3"
                actions={<Button onClick={clear}>{t("myRequests.clearFilters")}</Button>}
              >
                {t("myRequests.noneMatch")}
              </EmptyState>
            ) : (
              <EmptyState title={t("myRequests.noneFound")} heading="h3" actions={<NewRequest />}>
                {t("myRequests.noneYet")} {t("myRequests.yetNoneBody")}
              </EmptyState>
            )
          }
        >
          {({ rows, total }) => (
            <div className="grid gap-4">
              <RequestList rows={rows} label={t("myRequests.title")} />
              <Pagination
                page={filters.page}
                pageSize={PAGE_SIZE}
                total={total}
                onPage={(page) => {
                  void setFilters({ page }, pushing);
                  window.scrollTo({ top: 0 });
                }}
              />
            </div>
          )}
        </QueryView>
        {dashboard.data && dashboard.data.drafts > 0 ? <DraftsHint count={dashboard.data.drafts} /> : null}
      </section>
      {notice}
    </DashboardPage>
  );
}
