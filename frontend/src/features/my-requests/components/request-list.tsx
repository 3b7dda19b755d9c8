import { ChevronRight } from "lucide-react";
import { Link } from "react-router-dom";
import { paths } from "@/app/paths";
import { StatusBadge } from "@/components/status-badge";
import { formatDate, formatMoney } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import type { RequestLine } from "../api";

function amountWords({ status, amount_requested, amount_approved }: RequestLine): string {
  if (status === "approved" && amount_approved !== null)
    return t("myRequests.approvedFor", { amount: formatMoney(amount_approved) });
  return amount_requested === null
    ? t("myRequests.noAmount")
    : t("myRequests.asked", { amount: formatMoney(amount_requested) });
}

/** Requests as ruled lines; the whole line opens the request. */
export function RequestList({ rows, label }: { rows: readonly RequestLine[]; label: string }) {
  return (
    <ul className="list ruled" aria-label={label}>
      {rows.map((row) => (
        <li key={row.id} className="item">
          <h3>
            <Link
              to={paths.requestDetails(row.id)}
              aria-label={t("myRequests.viewDetailsNamed", {
                category: localName(row.category),
                number: row.request_number,
              })}
            >
              {localName(row.category)}
            </Link>
          </h3>
          <StatusBadge status={row.status} needsMoreProof={row.needs_more_proof} />
          <p className="meta">
            <span className="num whitespace-nowrap">{row.request_number}</span>
            <span className="num">{amountWords(row)}</span>
            <span>{t("myRequests.sentOn", { date: formatDate(row.submitted_at) })}</span>
            <span>{row.nonprofit_names.join(", ")}</span>
          </p>
          <span className="go" aria-hidden="true">
            {t("myRequests.viewDetails")} <ChevronRight />
          </span>
        </li>
      ))}
    </ul>
  );
}
