/** Transactions, donations and payouts: three lists, paginated on the server. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ArrowDownLeft, ArrowUpRight } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Link } from "react-router-dom";
import { paths } from "@/app/paths";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { DataTable, type Column } from "@/components/data-table";
import { DonationBadge } from "@/components/donation-badge";
import { Pagination } from "@/components/pagination";
import { QueryView } from "@/components/query-view";
import { State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { errorMessage } from "@/lib/errors";
import { formatDate, formatMoney } from "@/lib/format";
import { toast } from "@/lib/toast";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/budget";
import {
  donationsQuery,
  grantsQuery,
  LEDGER_PAGE_SIZE,
  transactionsQuery,
  useCancelDonation,
  useReceiveDonation,
  type Donation,
  type Grant,
  type LedgerPage,
  type Transaction,
} from "../api";

interface LedgerProps<T> {
  query: UseQueryResult<LedgerPage<T>>;
  page: number;
  onPage: (page: number) => void;
  columns: Column<T>[];
  rowKey: (row: T) => string;
  caption: string;
  empty: ReactNode;
}

function Ledger<T>({ query, page, onPage, columns, rowKey, caption, empty }: LedgerProps<T>) {
  return (
    <QueryView query={query} isEmpty={({ rows }) => rows.length === 0} empty={empty}>
      {({ rows, total }) => (
        <div className="grid gap-4">
          <DataTable rows={rows} columns={columns} rowKey={rowKey} caption={caption} />
          {total > LEDGER_PAGE_SIZE ? (
            <Pagination page={page} pageSize={LEDGER_PAGE_SIZE} total={total} onPage={onPage} />
          ) : null}
        </div>
      )}
    </QueryView>
  );
}

const day = (date: string) => <span className="num whitespace-nowrap">{formatDate(date)}</span>;

const transactionColumns = (): Column<Transaction>[] => [
  { key: "date", header: t("budget.columnDate"), card: "head", cell: (row) => day(row.date) },
  {
    key: "type",
    header: t("budget.columnType"),
    card: "low",
    cell: (row) => (
      <span className="io">
        {row.type === "Donation" ? <ArrowDownLeft aria-hidden="true" /> : <ArrowUpRight aria-hidden="true" />}
        {t(`budget.type.${row.type}`)}
      </span>
    ),
  },
  {
    key: "for",
    header: t("budget.columnFor"),
    cell: (row) =>
      row.type === "Donation" ? (
        <span className="typed">{row.donor ?? t("budget.anonymous")}</span>
      ) : (
        <span className="typed">
          {row.category ? localName(row.category) : null}{" "}
          {row.request_id && row.request_number ? (
            <Link className="id no-underline" to={paths.nonprofitRequest(row.request_id)}>
              {row.request_number}
            </Link>
          ) : (
            row.request_number
          )}
        </span>
      ),
  },
  {
    key: "amount",
    header: t("budget.columnAmount"),
    align: "right",
    card: "top",
    cell: (row) => (
      <span className={row.type === "Donation" ? "am in" : "am"}>
        {row.type === "Donation" ? "+ " : "− "}
        {formatMoney(row.amount)}
      </span>
    ),
  },
];

export interface LedgersProps {
  nonprofitId: string;
  organizationName: string;
}

export function Transactions({ nonprofitId, organizationName }: LedgersProps) {
  const [page, setPage] = useState(1);
  const query = useQuery(transactionsQuery(nonprofitId, page));
  return (
    <Ledger
      query={query}
      page={page}
      onPage={setPage}
      columns={transactionColumns()}
      rowKey={(row) => row.id}
      caption={t("budget.transactionsCaption", { name: organizationName })}
      empty={
        <State heading="h3" title={t("budget.transactionsEmptyTitle")}>
          {t("budget.transactionsEmpty")}
        </State>
      }
    />
  );
}

const donorOf = (donation: Donation) => donation.donor_name || donation.donor_email || t("budget.anonymous");

interface PledgeActs {
  onReceive: (donation: Donation) => void;
  onCancel: (donation: Donation) => void;
}

const donationColumns = (acts: PledgeActs): Column<Donation>[] => [
  {
    key: "donor",
    header: t("budget.columnDonor"),
    card: "head",
    cell: (row) => (
      <span className="typed">
        <strong>{donorOf(row)}</strong>
        {row.donor_email && row.donor_name ? <span className="block text-sm text-soft">{row.donor_email}</span> : null}
      </span>
    ),
  },
  {
    key: "status",
    header: t("budget.columnStatus"),
    card: "low",
    cell: (row) => <DonationBadge status={row.status}>{t(`budget.status.${row.status}`)}</DonationBadge>,
  },
  { key: "date", header: t("budget.columnDate"), cell: (row) => day(row.received_at ?? row.pledged_at) },
  {
    key: "amount",
    header: t("budget.columnAmount"),
    align: "right",
    card: "top",
    cell: (row) => <span className="am">{formatMoney(row.amount)}</span>,
  },
  {
    key: "action",
    header: t("budget.columnAction"),
    align: "right",
    card: "wide",
    cell: (row) =>
      row.status === "pledged" ? (
        <span className="acts gap-2">
          <Button
            aria-label={t("budget.markReceivedNamed", { amount: formatMoney(row.amount), donor: donorOf(row) })}
            onClick={() => acts.onReceive(row)}
          >
            {t("budget.markReceived")}
          </Button>
          <Button
            variant="quiet"
            aria-label={t("budget.cancelPledgeNamed", { amount: formatMoney(row.amount), donor: donorOf(row) })}
            onClick={() => acts.onCancel(row)}
          >
            {t("budget.cancelPledge")}
          </Button>
        </span>
      ) : null,
  },
];

export function Donations({ nonprofitId, organizationName }: LedgersProps) {
  const [page, setPage] = useState(1);
  const query = useQuery(donationsQuery(nonprofitId, page));
  const receive = useReceiveDonation(nonprofitId);
  const cancel = useCancelDonation(nonprofitId);
  const [asking, setAsking] = useState<{ act: "receive" | "cancel"; donation: Donation } | null>(null);
  const facts = asking
    ? { amount: formatMoney(asking.donation.amount), donor: donorOf(asking.donation) }
    : { amount: "", donor: "" };
  const done = {
    onSuccess: () => {
      toast(
        asking?.act === "cancel"
          ? { title: t("budget.cancelledToast") }
          : { title: t("budget.receivedToast"), description: t("budget.receivedToastBody", facts) },
      );
      setAsking(null);
    },
    onError: (error: unknown) => {
      toast({
        variant: "destructive",
        title: t("budget.failedTitle"),
        description: errorMessage(error, "budget.failed"),
      });
      setAsking(null);
    },
  };
  return (
    <>
      <Ledger
        query={query}
        page={page}
        onPage={setPage}
        columns={donationColumns({
          onReceive: (donation) => setAsking({ act: "receive", donation }),
          onCancel: (donation) => setAsking({ act: "cancel", donation }),
        })}
        rowKey={(row) => row.id}
        caption={t("budget.donationsCaption", { name: organizationName })}
        empty={
          <State heading="h3" title={t("budget.donationsEmptyTitle")}>
            {t("budget.donationsEmpty")}
          </State>
        }
      />
      <ConfirmDialog
        open={asking !== null}
        onOpenChange={(open) => (open ? undefined : setAsking(null))}
        tone={asking?.act === "cancel" ? "danger" : "primary"}
        title={asking?.act === "cancel" ? t("budget.cancelTitle") : t("budget.receiveTitle", facts)}
        description={t(asking?.act === "cancel" ? "budget.cancelBody" : "budget.receiveBody", facts)}
        confirmLabel={t(asking?.act === "cancel" ? "budget.cancelPledge" : "budget.markReceived")}
        busyLabel={t("budget.saving")}
        busy={receive.isPending || cancel.isPending}
        onConfirm={() => {
          if (!asking) return;
          if (asking.act === "receive") receive.mutate(asking.donation.id, done);
          else cancel.mutate(asking.donation.id, done);
        }}
      />
    </>
  );
}

const grantColumns = (onPay: (grant: Grant) => void): Column<Grant>[] => [
  {
    key: "request",
    header: t("budget.columnRequest"),
    card: "head",
    cell: (row) => (
      <>
        <Link className="id no-underline" to={paths.nonprofitRequest(row.request_id)}>
          {row.request_number}
        </Link>
        <span className="typed text-sm text-soft">
          {localName(row.category)}, {row.requester_name}
        </span>
      </>
    ),
  },
  {
    key: "granted",
    header: t("budget.columnGranted"),
    align: "right",
    cell: (row) => formatMoney(row.granted),
    card: "hide",
  },
  { key: "paid", header: t("budget.columnPaid"), align: "right", cell: (row) => formatMoney(row.paid), card: "hide" },
  {
    key: "open",
    header: t("budget.columnOpen"),
    align: "right",
    card: "top",
    cardLabel: true,
    cell: (row) => <span className="am">{formatMoney(row.outstanding)}</span>,
  },
  {
    key: "action",
    header: t("budget.columnAction"),
    align: "right",
    card: "wide",
    cell: (row) =>
      row.outstanding > 0 ? (
        <span className="acts">
          <Button aria-label={t("budget.payNamed", { number: row.request_number })} onClick={() => onPay(row)}>
            {t("budget.pay")}
          </Button>
        </span>
      ) : null,
  },
];

export function Payouts({ nonprofitId, onPay }: { nonprofitId: string; onPay: (grant: Grant) => void }) {
  const [page, setPage] = useState(1);
  const query = useQuery(grantsQuery(nonprofitId, page));
  return (
    <Ledger
      query={query}
      page={page}
      onPage={setPage}
      columns={grantColumns(onPay)}
      rowKey={(row) => row.request_id}
      caption={t("budget.payoutsCaption")}
      empty={
        <State heading="h3" title={t("budget.payoutsEmptyTitle")}>
          {t("budget.payoutsEmpty")}
        </State>
      }
    />
  );
}
