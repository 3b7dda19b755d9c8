/** The four figures, the utilization and the spending by category. */
import { Figures } from "@/components/figures";
import { SectionHead } from "@/components/pages";
import { EmptyState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Meter } from "@/components/ui/progress";
import { formatMoney, formatPercent } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/budget";
import type { Budget } from "../api";

export function BudgetFigures({ budget }: { budget: Budget }) {
  const percent = formatPercent(budget.utilization);
  return (
    <>
      <Figures
        figures={[
          { label: t("budget.allocated"), value: formatMoney(budget.totalAllocated) },
          { label: t("budget.donated"), value: formatMoney(budget.totalDonated) },
          { label: t("budget.approved"), value: formatMoney(budget.totalApproved) },
          {
            label: t("budget.remaining"),
            value: formatMoney(budget.remainingAvailable),
            sub: t("budget.remainingSub"),
          },
        ]}
      />
      <section>
        <SectionHead title={t("budget.utilization", { percent })}>
          <p className="num text-sm text-soft">
            {t("budget.utilizationSub", {
              approved: formatMoney(budget.totalApproved),
              allocated: formatMoney(budget.totalAllocated),
            })}
          </p>
        </SectionHead>
        <Meter value={budget.utilization} label={t("budget.utilizationLabel", { percent })} />
      </section>
    </>
  );
}

export function SpendingByCategory({ budget, onChange }: { budget: Budget; onChange: () => void }) {
  return (
    <section>
      <SectionHead title={t("budget.byCategory")}>
        {budget.spendingByCategory.length > 0 ? (
          <Button variant="quiet" onClick={onChange}>
            {t("budget.changeAllocations")}
          </Button>
        ) : null}
      </SectionHead>
      {budget.spendingByCategory.length === 0 ? (
        <EmptyState
          heading="h3"
          title={t("budget.allocationsEmptyTitle")}
          actions={<Button onClick={onChange}>{t("budget.setAllocations")}</Button>}
        >
          {t("budget.allocationsEmpty")}
        </EmptyState>
      ) : (
        <ul className="alloc list ruled">
          {budget.spendingByCategory.map((line) => (
            <li key={line.category}>
              <strong className="wrap-anywhere">{localName(line.category)}</strong>
              <span className="num text-soft">
                {line.allocated > 0
                  ? t("budget.ofAllocated", {
                      approved: formatMoney(line.amount),
                      allocated: formatMoney(line.allocated),
                    })
                  : t("budget.noAllocation", { approved: formatMoney(line.amount) })}
              </span>
              <span className="meter" aria-hidden="true">
                <i style={{ width: `${Math.min(100, line.percentage ?? 0)}%` }} />
              </span>
              <span className="num pc">{line.percentage === null ? "" : formatPercent(line.percentage)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
