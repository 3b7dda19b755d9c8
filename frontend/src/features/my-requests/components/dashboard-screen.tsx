import { useQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { paths } from "@/app/paths";
import { Figures } from "@/components/figures";
import { DashboardPage, SectionHead } from "@/components/pages";
import { QueryView } from "@/components/query-view";
import { EmptyState, FailedState, FiguresSkeleton, ListSkeleton } from "@/components/states";
import { Button } from "@/components/ui/button";
import { firstName, formatMoney, formatNumber } from "@/lib/format";
import { useUser } from "@/lib/session";
import { replacing } from "@/lib/url-state";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import "@/styles/requests.css";
import { dashboardQuery, RECENT, requestsQuery, type Dashboard } from "../api";
import { changeFilters, isFiltered, noFilters, useRequestFilters } from "../filters";
import { StatusAndCategory } from "./filter-fields";
import { RequestList } from "./request-list";
import { NewRequest } from "./new-request";

function news({ to_do, in_process }: Dashboard): string {
  if (to_do.length > 0) return t("myRequests.newsToDo", { count: to_do.length });
  if (in_process > 0) return t("myRequests.newsWaiting", { count: in_process });
  return t("myRequests.newsNothing");
}

function ToDo({ item, first }: { item: Dashboard["to_do"][number]; first: boolean }) {
  const id = `todo-${item.id}`;
  return (
    <section className="todo" aria-labelledby={id}>
      <div className="min-w-0">
        <p className="kicker">{t("myRequests.toDoKicker")}</p>
        <h2 id={id}>{t("myRequests.toDoTitle", { category: localName(item.category) })}</h2>
        <blockquote className="line-clamp-3">
          {t("myRequests.toDoQuote", {
            nonprofit: item.nonprofit_name ?? t("myRequests.aNonprofit"),
            notes: item.pending_notes,
          })}
        </blockquote>
      </div>
      <div>
        <Button asChild variant={first ? "primary" : "plain"}>
          <Link to={paths.requestDetails(item.id)}>{t("myRequests.toDoButton")}</Link>
        </Button>
      </div>
    </section>
  );
}

/**
 * The requester's home: next steps, figures, the latest requests. `notice` comes first if there are no requests yet,
 * else last.
 */
export function RequesterDashboardScreen({ notice }: { notice?: ReactNode }) {
  const user = useUser();
  const [{ status, category }, setFilters] = useRequestFilters();
  const filters = { ...noFilters, status, category };
  const dashboard = useQuery(dashboardQuery(user.id));
  const recent = useQuery(requestsQuery(user.id, filters, RECENT));
  const { data } = dashboard;
  const toDo = data?.to_do ?? [];
  return (
    <DashboardPage
      title={t("myRequests.dashboardTitle")}
      lead={
        data ? t("myRequests.hello", { name: firstName(user.fullName) || user.email, news: news(data) }) : undefined
      }
      action={
        <NewRequest
          variant={data !== undefined && toDo.length === 0 && data.total_requests > 0 ? "primary" : "plain"}
          className="wide-only"
        />
      }
    >
      {toDo.map((item, index) => (
        <ToDo key={item.id} item={item} first={index === 0} />
      ))}
      {data?.total_requests === 0 ? notice : null}
      {data ? (
        <Figures
          figures={[
            { label: t("myRequests.totalAid"), value: formatMoney(data.total_aid_received) },
            { label: t("myRequests.totalRequests"), value: formatNumber(data.total_requests) },
            { label: t("myRequests.inProcess"), value: formatNumber(data.in_process) },
            { label: t("myRequests.nonprofitsConnected"), value: formatNumber(data.nonprofits_connected) },
          ]}
        />
      ) : dashboard.isError ? (
        <FailedState
          error={dashboard.error}
          title={t("myRequests.failedTitle")}
          onRetry={() => void dashboard.refetch()}
        />
      ) : (
        <FiguresSkeleton />
      )}
      {/* when the whole page failed, one 'Try again' is enough */}
      {dashboard.isError && !data ? null : (
        <section aria-labelledby="recent">
          <SectionHead title={t("myRequests.recent")} id="recent">
            <Link className="back text-link" to={paths.myRequests}>
              {t("myRequests.viewAll")} <ChevronRight aria-hidden="true" />
            </Link>
          </SectionHead>
          <div className="filters slim mb-4">
            <StatusAndCategory
              filters={filters}
              onChange={(patch) => void setFilters(changeFilters(filters, patch), replacing)}
            />
          </div>
          <QueryView
            query={recent}
            loading={<ListSkeleton label={t("myRequests.loading")} />}
            failedTitle={t("myRequests.failedTitle")}
            isEmpty={({ rows }) => rows.length === 0}
            empty={
              isFiltered(filters) ? (
                <EmptyState title={t("myRequests.noneFound")} heading="h3">
                  {t("myRequests.tryChanging")}
                </EmptyState>
              ) : (
                <EmptyState title={t("myRequests.yetNone")} heading="h3" actions={<NewRequest />}>
                  {t("myRequests.yetNoneBody")}
                </EmptyState>
              )
            }
          >
            {({ rows }) => <RequestList rows={rows} label={t("myRequests.recent")} />}
          </QueryView>
          {data && data.drafts > 0 ? <DraftsHint count={data.drafts} /> : null}
        </section>
      )}
      {data && data.total_requests > 0 ? notice : null}
    </DashboardPage>
  );
}

/** A link to the drafts. */
export function DraftsHint({ count }: { count: number }) {
  return (
    <p className="mt-6 text-soft">
      {t("myRequests.draftsHint", { count })} <Link to={paths.requestDrafts}>{t("myRequests.draftsLink")}</Link>
    </p>
  );
}
