import { Link } from "react-router-dom";
import { EmptyArt } from "@/components/art/empty";
import { PublicPage } from "@/components/pages";
import { State } from "@/components/state";
import { Button } from "@/components/ui/button";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import "./marketing.css";

export function Component() {
  return (
    <PublicPage title={t("marketing.aboutTitle")} className="marketing">
      <section className="wrap intro">
        <h1 className="serif">{t("marketing.aboutHeadline")}</h1>
        <p className="lead">{t("marketing.aboutLead")}</p>
        <div className="actions mt-8">
          <Button asChild variant="primary" size="big">
            <Link to={paths.requestSubmission}>{t("marketing.aboutCta")}</Link>
          </Button>
          <Button asChild size="big">
            <Link to={paths.forNonprofits}>{t("marketing.aboutCtaNonprofit")}</Link>
          </Button>
        </div>
      </section>
      <section className="section alt">
        <div className="wrap grid gap-6 lg:grid-cols-[1fr_1.5fr] lg:gap-16">
          <h2>{t("marketing.missionTitle")}</h2>
          <div className="prose">
            <p className="font-serif text-xl leading-snug">{t("marketing.mission1")}</p>
            <p className="soft">{t("marketing.mission2")}</p>
          </div>
        </div>
      </section>
      <section className="section">
        <div className="wrap grid gap-6 lg:grid-cols-[1fr_1.5fr] lg:gap-16">
          <h2>{t("marketing.storyTitle")}</h2>
          <div className="prose">
            <p>{t("marketing.story1")}</p>
            <p>{t("marketing.story2")}</p>
            <p>{t("marketing.story3")}</p>
          </div>
        </div>
      </section>
      <section className="wrap pb-(--space-section)">
        <div className="border-t border-line pt-10">
          <h2 className="serif text-3xl">{t("marketing.teamTitle")}</h2>
          <State art={EmptyArt} heading="h3" title={t("marketing.teamEmpty")}>
            {t("marketing.teamEmptyBody")}
          </State>
        </div>
      </section>
    </PublicPage>
  );
}
