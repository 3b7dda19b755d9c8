import { Link } from "react-router-dom";
import { DataTable, type Column, type Sort } from "@/components/data-table";
import { Button } from "@/components/ui/button";
import { formatDate } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { amountWords } from "../amount-words";
import type { IncomingRow } from "../types";
import { isDue, namedWaiting } from "../waiting";
import { IncomingBadge } from "./incoming-badge";

export interface IncomingTableProps {
  rows: readonly IncomingRow[];
  caption: string;
  href: (requestId: string) => string;
  /** The reader may decide: due requests say 'Review'. */
  mayDecide: boolean;
  /** The dashboard's short list names no amounts. */
  withAmount?: boolean;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
}

function incomingColumns({
  href,
  mayDecide,
  withAmount,
}: Pick<IncomingTableProps, "href" | "mayDecide" | "withAmount">): Column<IncomingRow>[] {
  const columns: Column<IncomingRow>[] = [
    { key: "number", header: t("incoming.columnId"), sortable: true, card: "head", cell: (row) => row.request_number },
    {
      key: "category",
      header: t("incoming.columnCategory"),
      sortable: true,
      card: "wide",
      cell: (row) => (
        <span className="typed">
          <strong className="cat">{localName(row.category)}</strong>
          {row.assigned_to === null ? null : (
            <span className="small faint block">{t("incoming.looksAfter", { name: row.assigned_to })}</span>
          )}
        </span>
      ),
    },
    {
      key: "date",
      header: t("incoming.columnDate"),
      sortable: true,
      card: withAmount ? "wide" : undefined,
      cell: (row) => {
        const waited = namedWaiting(row);
        return (
          <span className="dt">
            <span className="num">{formatDate(row.submitted_at)}</span>
            {waited === null ? null : <span className="wait">{t("incoming.waited", { count: waited })}</span>}
          </span>
        );
      },
    },
    {
      key: "amount",
      header: t("incoming.columnAmount"),
      sortable: true,
      align: "right",
      cell: (row) => <span className="am">{amountWords(row.amount)}</span>,
    },
    {
      key: "status",
      header: t("incoming.columnStatus"),
      card: "top",
      cell: (row) => <IncomingBadge status={row.status} needsMoreProof={row.needs_more_proof} />,
    },
    {
      key: "action",
      header: t("incoming.columnAction"),
      align: "right",
      card: "badge",
      cell: (row) => {
        const review = mayDecide && isDue(row);
        const action = t(review ? "incoming.review" : "incoming.view");
        return (
          <Button asChild variant={review ? "plain" : "quiet"}>
            <Link
              to={href(row.request_id)}
              aria-label={t("incoming.aboutRequest", {
                action,
                category: localName(row.category),
                number: row.request_number,
              })}
            >
              {action}
            </Link>
          </Button>
        );
      },
    },
  ];
  return withAmount ? columns : columns.filter((column) => column.key !== "amount");
}

/** Request ID, Category, Date, Amount, Status, Action; a card each on phones. */
export function IncomingTable({ rows, caption, href, mayDecide, withAmount = true, sort, onSort }: IncomingTableProps) {
  return (
    <DataTable
      className="incoming"
      rows={rows}
      columns={incomingColumns({ href, mayDecide, withAmount })}
      rowKey={(row) => row.request_id}
      rowHref={(row) => href(row.request_id)}
      caption={caption}
      sort={sort}
      onSort={onSort}
    />
  );
}
