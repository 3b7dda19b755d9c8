import { Link } from "react-router-dom";
import { PublicPage } from "@/components/pages";
import { Accordion } from "@/components/ui/accordion";
import { Button } from "@/components/ui/button";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import { questions } from "./questions";
import "./marketing.css";
import { TermGroup } from "./term-group";

const FIRST_QUESTIONS = ["who", "how-long", "several", "who-reads"];

export function Component() {
  const steps = [
    [t("marketing.how1"), t("marketing.how1Body")],
    [t("marketing.how2"), t("marketing.how2Body")],
    [t("marketing.how3"), t("marketing.how3Body")],
  ] as const;
  const tools = [
    [t("marketing.howDashboard"), t("marketing.howDashboardBody")],
    [t("marketing.howBudget"), t("marketing.howBudgetBody")],
    [t("marketing.howAutomated"), t("marketing.howAutomatedBody")],
  ] as const;
  const first = questions().filter((item) => FIRST_QUESTIONS.includes(item.id));
  return (
    <PublicPage title={t("marketing.howTitle")} className="marketing">
      <section className="wrap intro">
        <h1 className="serif">{t("marketing.howHeadline")}</h1>
        <p className="lead">{t("marketing.howLead")}</p>
      </section>
      <section className="wrap pb-(--space-section)" aria-labelledby="seekers">
        <h2 id="seekers" className="serif mb-4 text-3xl">
          {t("marketing.howSeekers")}
        </h2>
        <ol>
          {steps.map(([title, body], index) => (
            <li key={title} className="story-step">
              <span className="n" aria-hidden="true">
                {index + 1}
              </span>
              <h3>{title}</h3>
              <p>{body}</p>
            </li>
          ))}
        </ol>
      </section>
      <section className="section alt">
        <div className="wrap">
          <TermGroup title={t("marketing.howNonprofits")} items={tools} />
        </div>
      </section>
      <section className="section">
        <div className="wrap grid gap-8 lg:grid-cols-[1fr_1.5fr] lg:gap-16">
          <div>
            <h2>{t("marketing.howFaqTitle")}</h2>
            <Button asChild className="mt-5">
              <Link to={paths.faq}>{t("marketing.howFaqMore")}</Link>
            </Button>
          </div>
          <Accordion items={first.map((item) => ({ id: item.id, title: item.question, body: <p>{item.answer}</p> }))} />
        </div>
      </section>
      <section className="band">
        <div className="wrap grid gap-8 py-16 lg:grid-cols-[1fr_auto] lg:items-center">
          <div>
            <h2 className="serif text-3xl">{t("marketing.howCtaTitle")}</h2>
            <p className="mt-3 text-lg">{t("marketing.howCtaBody")}</p>
          </div>
          <div className="actions">
            <Button asChild variant="onBand" size="big">
              <Link to={paths.submitRequest}>{t("marketing.howCtaSubmit")}</Link>
            </Button>
            <Button asChild variant="onBandPlain" size="big">
              <Link to={paths.nonprofitLogin}>{t("marketing.howCtaLogin")}</Link>
            </Button>
          </div>
        </div>
      </section>
    </PublicPage>
  );
}
