import { Fragment, type ReactNode } from "react";
import { PublicPage } from "@/components/pages";
import { useAppConfig } from "@/lib/env";
import { formatDate } from "@/lib/format";
import { t } from "@/messages";
import type { LegalText } from "@/messages/en/content/legal";
import "@/messages/en/marketing";
import { EnglishText } from "./english-text";
import "./marketing.css";

const anchor = (title: string) => title.toLowerCase().replace(/[^a-z]+/g, "-");

/** Privacy, terms, accessibility: plain words with a list of what is on the page. */
export function LegalPage({ text }: { text: LegalText }) {
  const email = useAppConfig()?.supportEmail;
  const withEmail = (words: string): ReactNode =>
    words.split("{email}").map((part, index) => (
      <Fragment key={part}>
        {index > 0 ? email ? <a href={`mailto:${email}`}>{email}</a> : t("marketing.contactSupport") : null}
        {part}
      </Fragment>
    ));
  return (
    <PublicPage title={text.title} className="marketing wrap legal">
      <header>
        <h1 className="serif" lang="en">
          {text.title}
        </h1>
        <p className="lead mt-4" lang="en">
          {text.lead}
        </p>
        <p className="small faint mt-3">{t("marketing.legalUpdated", { date: formatDate(text.updated) })}</p>
      </header>
      <EnglishText />
      <nav aria-label={t("marketing.onThisPage")} className="no-print">
        <h2 className="text-ui">{t("marketing.onThisPage")}</h2>
        <ul lang="en">
          {text.sections.map((section) => (
            <li key={section.title}>
              <a href={`#${anchor(section.title)}`}>{section.title}</a>
            </li>
          ))}
        </ul>
      </nav>
      <div className="prose" lang="en">
        {text.sections.map((section) => (
          <Fragment key={section.title}>
            <h2 id={anchor(section.title)}>{section.title}</h2>
            {section.body.map((part) =>
              typeof part === "string" ? (
                <p key={part}>{withEmail(part)}</p>
              ) : (
                <ul key={part[0]}>
                  {part.map((item) => (
                    <li key={item}>{withEmail(item)}</li>
                  ))}
                </ul>
              ),
            )}
          </Fragment>
        ))}
      </div>
    </PublicPage>
  );
}
