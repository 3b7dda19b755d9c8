import { MapPin } from "lucide-react";
import { Link } from "react-router-dom";
import { BasketArt } from "@/components/art/basket";
import { CareArt } from "@/components/art/care";
import { HouseArt } from "@/components/art/house";
import { SchoolArt } from "@/components/art/school";
import { ShopArt } from "@/components/art/shop";
import { PublicPage } from "@/components/pages";
import { Tag } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Words } from "@/components/words";
import { useAppConfig } from "@/lib/env";
import { t } from "@/messages";
import "@/messages/en/marketing";
import "@/messages/en/partners";
import { paths } from "../../paths";
import "./marketing.css";

/** The five partners, each with an illustration of its work. */
const partners = [
  { id: "lakeside", name: "Lakeside Food Bank", Logo: BasketArt, website: "https://lakesidefoodbank.example" },
  { id: "harbor", name: "Harbor Relief Fund", Logo: HouseArt, website: "https://harborrelief.example" },
  { id: "bonRepos", name: "Clinique Bon Repos", Logo: CareArt, website: "https://bonrepos.example" },
  { id: "openDoor", name: "Open Door Learning Fund", Logo: SchoolArt, website: "https://opendoorlearning.example" },
  { id: "puente", name: "Puente Pequeño", Logo: ShopArt, website: "https://puentepequeno.example" },
] as const;
const services = ["service1", "service2", "service3"] as const;

export function Component() {
  const email = useAppConfig()?.supportEmail;
  return (
    <PublicPage title={t("marketing.partnersTitle")} className="marketing">
      <section className="wrap intro">
        <h1 className="serif">{t("marketing.partnersHeadline")}</h1>
        <p className="lead">{t("marketing.partnersLead")}</p>
      </section>
      <div className="wrap cards pb-(--space-section)">
        {partners.map((partner) => {
          const { id, Logo } = partner;
          return (
            <article key={id}>
              <Logo />
              <h2>{partner.name}</h2>
              <p className="small soft mt-1 flex items-center gap-2">
                <MapPin aria-hidden="true" className="text-faint" />
                {t(`partners.${id}.location`)}
              </p>
              <p className="mt-2">{t(`partners.${id}.description`)}</p>
              <ul className="tags" aria-label={t("marketing.partnerServices", { name: partner.name })}>
                {services.map((service) => (
                  <li key={service}>
                    <Tag>{t(`partners.${id}.${service}`)}</Tag>
                  </li>
                ))}
              </ul>
              <p className="mt-2">
                <a className="inline-flex min-h-11 items-center" href={partner.website} rel="noopener noreferrer">
                  {partner.website.replace("https://", "")}
                </a>
              </p>
            </article>
          );
        })}
      </div>
      <section className="section alt">
        <div className="wrap grid gap-6 lg:grid-cols-[1fr_auto] lg:items-center">
          <div>
            <h2>{t("marketing.becomePartner")}</h2>
            <p className="lead mt-3">
              {email ? (
                <Words k="marketing.becomePartnerBody" parts={{ email: <a href={`mailto:${email}`}>{email}</a> }} />
              ) : (
                t("marketing.becomePartnerBodyPlain")
              )}
            </p>
          </div>
          <Button asChild variant="primary" size="big">
            <Link to={paths.nonprofitSignup}>{t("marketing.becomePartnerButton")}</Link>
          </Button>
        </div>
      </section>
    </PublicPage>
  );
}
