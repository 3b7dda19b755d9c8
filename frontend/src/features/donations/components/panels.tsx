/** The three tabs of the donor's dashboard. */
import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { DataTable, type Column } from "@/components/data-table";
import { DonationBadge } from "@/components/donation-badge";
import { Figures } from "@/components/figures";
import { SectionHead } from "@/components/pages";
import { EmptyState } from "@/components/states";
import { Tag } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { agoWords } from "@/lib/ago";
import { formatDate, formatList, formatMoney, formatNumber, formatPercent } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/donations";
import type { DonorDashboard, DonorMessage, Gift } from "../api";

/** Categories with their own shade in the bar; the rest share the last. */
const SHADES = 5;
/** Groups too small to be told alone (`donor_dashboard`). */
const OTHER = "Other";

const givenOn = (gift: Gift) => formatDate(gift.received_at ?? gift.pledged_at);

export function DonorFigures({ data }: { data: DonorDashboard }) {
  return (
    <Figures
      figures={[
        { label: t("donations.totalDonated"), value: formatMoney(data.total_donated) },
        { label: t("donations.peopleImpacted"), value: formatNumber(data.people_impacted) },
        { label: t("donations.nonprofitsSupported"), value: formatNumber(data.nonprofits_supported) },
      ]}
    />
  );
}

function NoGifts({ heading, action }: { heading: "h2" | "h3"; action: ReactNode }) {
  return (
    <EmptyState heading={heading} title={t("donations.emptyTitle")} actions={action}>
      {t("donations.emptyBody")}
    </EmptyState>
  );
}

/** What the gifts paid for, as a bar with a legend. */
export function PaidFor({ data }: { data: DonorDashboard }) {
  const total = data.paid_for.reduce((sum, part) => sum + part.amount, 0);
  if (total === 0)
    return (
      <p className="text-soft">{t(data.people_impacted > 0 ? "donations.paidForFew" : "donations.impactEmpty")}</p>
    );
  // the largest first, and what has no name of its own last
  const parts = [...data.paid_for].sort((a, b) => Number(a.category === OTHER) - Number(b.category === OTHER));
  const shade = (index: number) => `shade-${parts[index]?.category === OTHER ? SHADES : Math.min(index + 1, SHADES)}`;
  return (
    <div className="panel">
      <div className="in grid gap-4 pt-5!">
        <div
          className="share"
          role="img"
          aria-label={formatList(
            parts.map((part) =>
              t("donations.sharePart", {
                category: localName(part.category),
                percent: formatPercent((100 * part.amount) / total),
              }),
            ),
          )}
        >
          {parts.map((part, index) => (
            <i key={part.category} className={shade(index)} style={{ width: `${(100 * part.amount) / total}%` }} />
          ))}
        </div>
        <ul className="keys">
          {parts.map((part, index) => (
            <li key={part.category}>
              <b className={shade(index)} aria-hidden="true" />
              <span>{localName(part.category)}</span>
              <span>{formatMoney(part.amount)}</span>
            </li>
          ))}
        </ul>
        <p className="text-sm text-soft">{t("donations.totalsOnly")}</p>
      </div>
    </div>
  );
}

export interface OverviewProps {
  data: DonorDashboard;
  onSeeAll: () => void;
  onRead: (message: DonorMessage) => void;
  donate: ReactNode;
}

export function DonorOverview({ data, onSeeAll, onRead, donate }: OverviewProps) {
  return (
    <div className="grid gap-8">
      <DonorFigures data={data} />
      <div className="two wide">
        <section>
          <SectionHead title={t("donations.yours")}>
            {data.donations.length > 0 ? (
              <Button variant="quiet" onClick={onSeeAll}>
                {t("donations.seeAll")}
                <ChevronRight aria-hidden="true" />
              </Button>
            ) : null}
          </SectionHead>
          {data.donations.length === 0 ? (
            <NoGifts heading="h3" action={donate} />
          ) : (
            <ul className="list ruled">
              {data.donations.slice(0, 3).map((gift) => (
                <li key={gift.id} className="item">
                  <h3 className="wrap-anywhere">{gift.nonprofit_name}</h3>
                  <strong className="num">{formatMoney(gift.amount)}</strong>
                  <p className="meta num">
                    <span>{givenOn(gift)}</span>
                    <span>{t(`donations.status.${gift.status}`)}</span>
                  </p>
                </li>
              ))}
            </ul>
          )}
        </section>
        <section>
          <SectionHead title={t("donations.paidFor")} />
          <PaidFor data={data} />
        </section>
      </div>
      <section>
        <SectionHead title={t("donations.messages")} />
        {data.messages.length === 0 ? (
          <p className="text-soft">{t("donations.messagesEmpty")}</p>
        ) : (
          <ul className="list ruled">
            {data.messages.map((message) => (
              <li key={message.id} className="item">
                <h3 className="wrap-anywhere">
                  <button
                    type="button"
                    className="cursor-pointer text-start font-[inherit] after:absolute after:inset-0"
                    onClick={() => onRead(message)}
                  >
                    {message.subject}
                  </button>
                </h3>
                {message.unread ? <Tag className="hot">{t("donations.unread")}</Tag> : <span />}
                <p className="meta">
                  <span>{message.nonprofit_name}</span>
                  <span>{agoWords(message.date)}</span>
                </p>
              </li>
            ))}
          </ul>
        )}
      </section>
    </div>
  );
}

const giftColumns = (): Column<Gift>[] => [
  {
    key: "nonprofit",
    header: t("donations.columnNonprofit"),
    card: "head",
    cell: (gift) => <strong className="typed">{gift.nonprofit_name}</strong>,
  },
  {
    key: "date",
    header: t("donations.columnDate"),
    cell: (gift) => <span className="num">{givenOn(gift)}</span>,
  },
  {
    key: "status",
    header: t("donations.columnStatus"),
    card: "low",
    cell: (gift) => <DonationBadge status={gift.status}>{t(`donations.status.${gift.status}`)}</DonationBadge>,
  },
  {
    key: "amount",
    header: t("donations.columnAmount"),
    align: "right",
    card: "top",
    cell: (gift) => <span className="am">{formatMoney(gift.amount)}</span>,
  },
];

export function DonorGifts({ data, donate }: Pick<OverviewProps, "data" | "donate">) {
  return data.donations.length === 0 ? (
    <NoGifts heading="h2" action={donate} />
  ) : (
    <DataTable
      className="gifts"
      rows={data.donations}
      columns={giftColumns()}
      rowKey={(gift) => gift.id}
      caption={t("donations.caption")}
    />
  );
}

interface Supported {
  id: string;
  name: string;
  given: number;
}

/** What was received by each nonprofit, the largest first. */
export function givenByNonprofit(gifts: readonly Gift[]): Supported[] {
  const sums = new Map<string, Supported>();
  for (const gift of gifts) {
    if (gift.status !== "received") continue;
    const known = sums.get(gift.nonprofit_id) ?? { id: gift.nonprofit_id, name: gift.nonprofit_name, given: 0 };
    sums.set(gift.nonprofit_id, { ...known, given: known.given + gift.amount });
  }
  return [...sums.values()].sort((a, b) => b.given - a.given || a.name.localeCompare(b.name));
}

export function DonorImpact({ data }: { data: DonorDashboard }) {
  const supported = givenByNonprofit(data.donations);
  if (supported.length === 0) {
    return <EmptyState title={t("donations.impactEmptyTitle")}>{t("donations.impactEmpty")}</EmptyState>;
  }
  return (
    <div className="grid gap-8">
      <p className="text-lg">{t("donations.impactPeople", { count: data.people_impacted })}</p>
      <div className="two wide">
        <section>
          <SectionHead title={t("donations.impactByNonprofit")} />
          <ul className="list ruled">
            {supported.map((nonprofit) => (
              <li key={nonprofit.id} className="item">
                <h3 className="wrap-anywhere">{nonprofit.name}</h3>
                <span className="num">{t("donations.given", { amount: formatMoney(nonprofit.given) })}</span>
              </li>
            ))}
          </ul>
        </section>
        <section>
          <SectionHead title={t("donations.paidFor")} />
          <PaidFor data={data} />
        </section>
      </div>
    </div>
  );
}
