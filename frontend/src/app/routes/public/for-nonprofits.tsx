import { ArrowRight } from "lucide-react";
import { Link } from "react-router-dom";
import { PublicPage } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import "./marketing.css";
import { TermGroup } from "./term-group";

export function Component() {
  const day = [
    [t("marketing.nonprofitsMorning"), t("marketing.nonprofitsMorningTitle"), t("marketing.nonprofitsMorningBody")],
    [t("marketing.nonprofitsNoon"), t("marketing.nonprofitsNoonTitle"), t("marketing.nonprofitsNoonBody")],
    [t("marketing.nonprofitsEvening"), t("marketing.nonprofitsEveningTitle"), t("marketing.nonprofitsEveningBody")],
  ] as const;
  const gets = [
    [t("marketing.nonprofitsGets1"), t("marketing.nonprofitsGets1Body")],
    [t("marketing.nonprofitsGets2"), t("marketing.nonprofitsGets2Body")],
    [t("marketing.nonprofitsGets3"), t("marketing.nonprofitsGets3Body")],
    [t("marketing.nonprofitsGets4"), t("marketing.nonprofitsGets4Body")],
  ] as const;
  return (
    <PublicPage title={t("marketing.nonprofitsTitle")} className="marketing">
      <section className="wrap intro">
        <p className="kicker mb-2">{t("marketing.nonprofitsTitle")}</p>
        <h1 className="serif">{t("marketing.nonprofitsHeadline")}</h1>
        <p className="lead">{t("marketing.nonprofitsLead")}</p>
        <div className="actions mt-8">
          <Button asChild variant="primary" size="big">
            <Link to={paths.nonprofitSignup}>{t("marketing.nonprofitsStart")}</Link>
          </Button>
          <Button asChild size="big">
            <Link to={paths.login}>{t("marketing.nonprofitsLogin")}</Link>
          </Button>
        </div>
        <p className="soft mt-4 text-ui">{t("marketing.nonprofitsHelp")}</p>
      </section>
      <section className="section alt">
        <div className="wrap">
          <h2>{t("marketing.nonprofitsDayTitle")}</h2>
          <ol className="mt-8">
            {day.map(([when, title, body]) => (
              <li key={when} className="story-step">
                <span className="font-semibold text-link">{when}</span>
                <h3>{title}</h3>
                <p>{body}</p>
              </li>
            ))}
          </ol>
        </div>
      </section>
      <section className="section">
        <div className="wrap">
          <TermGroup title={t("marketing.nonprofitsGetsTitle")} items={gets} />
          <Link className="back mt-6 text-link!" to={paths.donorCommunication}>
            {t("marketing.nonprofitsDonorLink")}
            <ArrowRight aria-hidden="true" />
          </Link>
        </div>
      </section>
    </PublicPage>
  );
}
