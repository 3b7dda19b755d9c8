import { ChevronLeft, ChevronRight } from "lucide-react";
import { formatNumber } from "@/lib/format";
import { t } from "@/messages";

export interface PaginationProps {
  /** The current page, from 1. */
  page: number;
  pageSize: number;
  total: number;
  onPage: (page: number) => void;
  /** '11–20 of 58 requests'; the default leaves the noun out. */
  summary?: string;
}

function around(page: number, last: number): number[] {
  const first = Math.max(1, Math.min(page - 2, last - 4));
  return Array.from({ length: Math.min(5, last) }, (_, index) => first + index);
}

/** Pages of a list that is paginated on the server. */
export function Pagination({ page, pageSize, total, onPage, summary }: PaginationProps) {
  const last = Math.max(1, Math.ceil(total / pageSize));
  if (total === 0) return null;
  const from = (page - 1) * pageSize + 1;
  const to = Math.min(total, page * pageSize);
  const step = (target: number, label: string, children: React.ReactNode, current = false) => (
    <button
      key={label}
      type="button"
      className="p"
      aria-label={label}
      aria-current={current ? "page" : undefined}
      disabled={target < 1 || target > last}
      onClick={() => onPage(target)}
    >
      {children}
    </button>
  );
  return (
    <div className="pages">
      <span role="status" className="num">
        {summary ?? t("common.range", { from: formatNumber(from), to: formatNumber(to), total: formatNumber(total) })}
      </span>
      {last > 1 ? (
        <nav aria-label={t("common.pagesLabel")} className="flex flex-wrap gap-1">
          {step(page - 1, t("common.previous"), <ChevronLeft aria-hidden="true" />)}
          {around(page, last).map((target) =>
            step(target, t("common.page", { page: target }), formatNumber(target), target === page),
          )}
          {step(page + 1, t("common.next"), <ChevronRight aria-hidden="true" />)}
        </nav>
      ) : null}
    </div>
  );
}
