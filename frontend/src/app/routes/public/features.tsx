import { Link } from "react-router-dom";
import { HandsArt } from "@/components/art/hands";
import { LetterArt } from "@/components/art/letter";
import { PublicPage } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { useAppConfig } from "@/lib/env";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import "./marketing.css";

export function Component() {
  const texts = useAppConfig()?.sms ?? false;
  const groups = [
    {
      title: t("marketing.groupAsking"),
      body: t("marketing.groupAskingBody"),
      items: [
        [t("marketing.f1"), t("marketing.f1Body")],
        [t("marketing.f2"), t("marketing.f2Body")],
        [t("marketing.f3"), t("marketing.f3Body")],
      ],
    },
    {
      title: t("marketing.groupAnswering"),
      body: t("marketing.groupAnsweringBody"),
      items: [
        [t("marketing.f4"), t("marketing.f4Body")],
        [t("marketing.f5"), t("marketing.f5Body")],
        [t("marketing.f6"), t("marketing.f6Body")],
      ],
    },
    {
      title: t("marketing.groupInforming"),
      body: t("marketing.groupInformingBody"),
      items: [
        [t("marketing.f7"), t("marketing.f7Body")],
        [t("marketing.f8"), t(texts ? "marketing.f8BodyTexts" : "marketing.f8Body")],
        [t("marketing.f9"), t("marketing.f9Body")],
      ],
    },
  ] as const;
  return (
    <PublicPage title={t("marketing.featuresTitle")} className="marketing">
      <section className="wrap intro">
        <h1 className="serif">{t("marketing.featuresHeadline")}</h1>
        <p className="lead">{t("marketing.featuresLead")}</p>
      </section>
      <div className="wrap">
        {groups.map((group) => (
          <section key={group.title} className="group">
            <header>
              <h2 className="serif">{group.title}</h2>
              <p className="soft">{group.body}</p>
            </header>
            <dl>
              {group.items.map(([title, body]) => (
                <div key={title}>
                  <dt>{title}</dt>
                  <dd>{body}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <section className="section alt">
        <div className="wrap ends">
          <article>
            <HandsArt />
            <h2>{t("marketing.endNonprofits")}</h2>
            <p className="soft">{t("marketing.endNonprofitsBody")}</p>
            <div className="actions">
              <Button asChild variant="primary" size="big">
                <Link to={paths.nonprofitSignup}>{t("marketing.signUpNow")}</Link>
              </Button>
              <Button asChild size="big">
                <Link to={paths.pricing}>{t("marketing.viewPricing")}</Link>
              </Button>
            </div>
          </article>
          <article>
            <LetterArt />
            <h2>{t("marketing.endSeekers")}</h2>
            <p className="soft">{t("marketing.endSeekersBody")}</p>
            <div className="actions">
              <Button asChild size="big">
                <Link to={paths.requestSubmission}>{t("marketing.submitARequest")}</Link>
              </Button>
            </div>
          </article>
        </div>
      </section>
    </PublicPage>
  );
}
