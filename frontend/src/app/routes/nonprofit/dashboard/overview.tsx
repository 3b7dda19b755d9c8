import { ChevronRight } from "lucide-react";
import { Link } from "react-router-dom";
import { Figures } from "@/components/figures";
import { SectionHead } from "@/components/pages";
import { RuledSum } from "@/components/ruled-sum";
import { Button } from "@/components/ui/button";
import { Meter } from "@/components/ui/progress";
import { amountWords } from "@/features/incoming-requests/amount-words";
import { IncomingBadge } from "@/features/incoming-requests/components/incoming-badge";
import type { DashboardBudget, DashboardCategory, NonprofitDashboard } from "@/features/nonprofit-dashboard/api";
import { agoWords } from "@/lib/ago";
import { formatDate, formatList, formatMoney, formatNumber, formatPercent } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/budget";
import "@/messages/en/helpCategories";
import "@/messages/en/incoming";
import "@/messages/en/nonprofitDashboard";
import { paths } from "../../../paths";

function Next({ request }: { request: NonprofitDashboard["longest_waiting"] }) {
  if (!request) {
    return (
      <section className="next" aria-labelledby="next-heading">
        <div>
          <h2 id="next-heading">{t("nonprofitDashboard.nothingTitle")}</h2>
          <p>{t("nonprofitDashboard.nothingBody")}</p>
        </div>
      </section>
    );
  }
  const ago = agoWords(request.submitted_at);
  const sent = request.requester_name
    ? t("nonprofitDashboard.nextSent", { ago, name: request.requester_name })
    : t("nonprofitDashboard.nextSentNoName", { ago });
  const others =
    request.part === "open" && request.also_sent_to.length > 0
      ? ` ${t("nonprofitDashboard.alsoSent", { names: formatList(request.also_sent_to) })}`
      : "";
  return (
    <section className="next" aria-labelledby="next-heading">
      <div>
        <span className="text-sm font-semibold text-soft">{t("nonprofitDashboard.longestWaiting")}</span>
        <h2 id="next-heading">
          {t("nonprofitDashboard.nextWithAmount", {
            number: request.request_number,
            category: localName(request.category),
            amount: amountWords(request.amount),
          })}
        </h2>
        <p>
          {sent}
          {others}
        </p>
      </div>
      <Button asChild variant="primary">
        <Link to={paths.nonprofitRequest(request.request_id)}>{t("nonprofitDashboard.reviewRequest")}</Link>
      </Button>
    </section>
  );
}

function More({ to, children }: { to: string; children: string }) {
  return (
    <Link className="back text-link!" to={to}>
      {children}
      <ChevronRight aria-hidden="true" />
    </Link>
  );
}

export function BudgetSummary({ budget }: { budget: DashboardBudget }) {
  const { total = 0, used = 0, remaining = 0, by_category: spent = [] } = budget;
  const most = Math.max(1, ...spent.map((entry) => entry.amount));
  return (
    <div className="panel">
      <div className="in grid gap-4 pt-5!">
        <Meter value={budget.percent} label={t("budget.usedLabel", { percent: formatPercent(budget.percent) })} />
        <RuledSum
          rows={[
            { label: t("budget.total"), value: formatMoney(total) },
            {
              label: t("budget.used"),
              value: (
                <>
                  {formatMoney(used)} <span>{formatPercent(budget.percent)}</span>
                </>
              ),
            },
            { label: t("budget.remaining"), value: formatMoney(remaining) },
          ]}
        />
        {spent.length > 0 ? (
          <div>
            <h3 className="mb-2 text-ui">{t("budget.whereItWent")}</h3>
            <ul className="bars">
              {spent.map((entry) => (
                <li key={entry.category}>
                  <span>{localName(entry.category)}</span>
                  <b>{formatMoney(entry.amount)}</b>
                  <i
                    style={{ "--v": `${Math.round((100 * entry.amount) / most)}%` } as React.CSSProperties}
                    aria-hidden="true"
                  />
                </li>
              ))}
            </ul>
          </div>
        ) : null}
      </div>
    </div>
  );
}

function Categories({ categories }: { categories: readonly DashboardCategory[] }) {
  if (categories.length === 0) return <p className="text-soft">{t("helpCategories.empty")}</p>;
  return (
    <ul className="list ruled">
      {categories.map((category) => (
        <li key={category.id} className="py-3">
          <strong>{localName(category.name)}</strong>
          {category.description ? <p className="text-ui text-soft">{category.description}</p> : null}
        </li>
      ))}
    </ul>
  );
}

/** Open work, figures and recent events. */
export function Overview({ data, managed }: { data: NonprofitDashboard; managed: boolean }) {
  return (
    <div className="grid gap-8">
      {data.counts ? (
        <>
          <Next request={data.longest_waiting} />
          <Figures
            figures={[
              { label: t("nonprofitDashboard.pending"), value: formatNumber(data.counts.pending) },
              { label: t("nonprofitDashboard.approved"), value: formatNumber(data.counts.approved) },
              { label: t("nonprofitDashboard.declined"), value: formatNumber(data.counts.declined) },
              { label: t("nonprofitDashboard.budgetUsed"), value: formatPercent(data.budget.percent) },
            ]}
          />
        </>
      ) : null}
      <div className="two wide">
        {data.counts ? (
          <section aria-labelledby="recent-heading">
            <SectionHead id="recent-heading" title={t("nonprofitDashboard.recent")}>
              <More to={paths.nonprofitRequests}>{t("nonprofitDashboard.allRequests")}</More>
            </SectionHead>
            {data.recent.length === 0 ? (
              <p className="text-soft">{t("nonprofitDashboard.recentEmpty")}</p>
            ) : (
              <ul className="list ruled">
                {data.recent.map((request) => (
                  <li key={request.request_id} className="item">
                    <h3>
                      <Link
                        to={paths.nonprofitRequest(request.request_id)}
                        aria-label={`${localName(request.category)}, ${request.request_number}`}
                      >
                        {localName(request.category)}
                      </Link>
                    </h3>
                    <IncomingBadge status={request.status} needsMoreProof={request.needs_more_proof} />
                    <p className="meta num">
                      <span>{request.request_number}</span>
                      <span>{amountWords(request.amount)}</span>
                      <span>{formatDate(request.submitted_at)}</span>
                    </p>
                  </li>
                ))}
              </ul>
            )}
          </section>
        ) : null}
        {managed ? (
          <section aria-labelledby="budget-heading">
            <SectionHead id="budget-heading" title={t("nonprofitDashboard.budgetSummary")}>
              <More to={paths.nonprofitBudget}>{t("nonprofitDashboard.budgetLink")}</More>
            </SectionHead>
            <BudgetSummary budget={data.budget} />
          </section>
        ) : (
          <section aria-labelledby="categories-heading">
            <SectionHead id="categories-heading" title={t("nonprofitDashboard.helpCategories")} />
            <Categories categories={data.categories} />
          </section>
        )}
      </div>
    </div>
  );
}
