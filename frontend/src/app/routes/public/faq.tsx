import { ArrowRight, Mail } from "lucide-react";
import { Link } from "react-router-dom";
import { PublicPage } from "@/components/pages";
import { Accordion } from "@/components/ui/accordion";
import { Button } from "@/components/ui/button";
import { useAppConfig } from "@/lib/env";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";
import { questions } from "./questions";
import "./marketing.css";

export function Component() {
  const email = useAppConfig()?.supportEmail ?? "";
  const cards = [
    [paths.howItWorks, t("marketing.cardHow"), t("marketing.cardHowBody")],
    [paths.resourceLibrary, t("marketing.cardResources"), t("marketing.cardResourcesBody")],
  ] as const;
  return (
    <PublicPage title={t("marketing.faqTitle")} className="marketing wrap faq">
      <div className="lft">
        <h1 className="serif">{t("marketing.faqHeadline")}</h1>
        <p className="lead">{t("marketing.faqLead")}</p>
        <Button asChild>
          <a href={`mailto:${email}`}>
            <Mail aria-hidden="true" />
            {t("marketing.contactSupport")}
          </a>
        </Button>
      </div>
      <div className="rgt">
        <Accordion
          headingLevel={2}
          items={questions().map((item) => ({ id: item.id, title: item.question, body: <p>{item.answer}</p> }))}
        />
        <div className="more2">
          {cards.map(([to, title, body]) => (
            <Link key={to} to={to}>
              <strong>{title}</strong>
              <span>{body}</span>
              <ArrowRight aria-hidden="true" />
            </Link>
          ))}
        </div>
      </div>
    </PublicPage>
  );
}
