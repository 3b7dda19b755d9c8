import { Check } from "lucide-react";
import { Link } from "react-router-dom";
import { HandsArt } from "@/components/art/hands";
import { PublicPage } from "@/components/pages";
import { Tag } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { PledgeDialog } from "@/features/pledges/pledge-dialog";
import { cn } from "@/lib/cn";
import { formatMoney } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import "./marketing.css";

/** Dollars per month (section 9). */
const PRICES = { free: 0, pro: 29, organization: 99 } as const;

function Ticks({ items, columns }: { items: readonly string[]; columns?: boolean }) {
  return (
    <ul className={cn("ticks", columns && "two-col")}>
      {items.map((item) => (
        <li key={item}>
          <Check aria-hidden="true" />
          <span>{item}</span>
        </li>
      ))}
    </ul>
  );
}

function Amount({ dollars }: { dollars: number }) {
  return (
    <p className="amount">
      <b className="num">{formatMoney(dollars)}</b> {t("marketing.perMonth")}
    </p>
  );
}

export function Component() {
  return (
    <PublicPage title={t("marketing.pricingTitle")} className="marketing">
      <section className="wrap price">
        <h1 className="serif">
          <span>{t("marketing.pricingHeadline1")}</span> <span>{t("marketing.pricingHeadline2")}</span>
        </h1>
        <p className="lead">{t("marketing.pricingLead")}</p>
        <div className="plans">
          <article className="panel free">
            <div>
              <div className="row justify-between">
                <h2>{t("marketing.free")}</h2>
                <span className="badge approved ps-[0.65rem]!">{t("marketing.availableNow")}</span>
              </div>
              <Amount dollars={PRICES.free} />
              <Ticks items={[t("marketing.free1"), t("marketing.free2"), t("marketing.free3"), t("marketing.free4")]} />
            </div>
            <Button asChild variant="primary" size="big" full>
              <Link to={paths.nonprofitSignup}>{t("marketing.signUpNow")}</Link>
            </Button>
          </article>
          <div className="later">
            <article>
              <div className="row justify-between">
                <h2>{t("marketing.pro")}</h2>
                <span className="row gap-2!">
                  <Tag>{t("marketing.recommended")}</Tag>
                  <Tag>{t("marketing.comingSoon")}</Tag>
                </span>
              </div>
              <Amount dollars={PRICES.pro} />
              <Ticks
                columns
                items={[
                  t("marketing.pro1"),
                  t("marketing.pro2"),
                  t("marketing.pro3"),
                  t("marketing.pro4"),
                  t("marketing.pro5"),
                ]}
              />
            </article>
            <article>
              <div className="row justify-between">
                <h2>{t("marketing.organization")}</h2>
                <Tag>{t("marketing.comingSoon")}</Tag>
              </div>
              <Amount dollars={PRICES.organization} />
              <Ticks
                columns
                items={[
                  t("marketing.org1"),
                  t("marketing.org2"),
                  t("marketing.org3"),
                  t("marketing.org4"),
                  t("marketing.org5"),
                ]}
              />
            </article>
          </div>
        </div>
      </section>
      <section className="section alt">
        <div className="wrap give">
          <HandsArt />
          <div>
            <h2>{t("marketing.donationsTitle")}</h2>
            <p className="lead mt-3">{t("marketing.donationsBody")}</p>
          </div>
          <PledgeDialog />
        </div>
      </section>
    </PublicPage>
  );
}
