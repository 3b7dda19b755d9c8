import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { Logo } from "@/components/logo";
import { useAppConfig } from "@/lib/env";
import { t } from "@/messages";
import { paths } from "../paths";
import { TranslationNote } from "./translation-note";

function Column({ title, links }: { title: string; links: readonly [to: string, label: ReactNode][] }) {
  return (
    <nav aria-label={title}>
      <h2>{title}</h2>
      <ul>
        {links.map(([to, label]) => (
          <li key={to}>
            <Link to={to}>{label}</Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Proper names: not translated. */
const SOCIAL = [
  ["Facebook", "https://www.facebook.com/aidbridge"],
  ["Instagram", "https://www.instagram.com/aidbridge"],
  ["LinkedIn", "https://www.linkedin.com/company/aidbridge"],
] as const;

/** The year of the visit; a page left open over New Year does no harm. */
const YEAR = String(new Date().getFullYear());

export function SiteFooter() {
  const supportEmail = useAppConfig()?.supportEmail;
  return (
    <footer className="footer">
      <div className="wrap">
        <div className="footer-grid">
          <div>
            <Logo />
            <p className="soft max-w-[22em]">{t("shell.footerTagline")}</p>
          </div>
          <Column
            title={t("shell.footerSeekers")}
            links={[
              [paths.requestSubmission, t("shell.footerSubmit")],
              [paths.howItWorks, t("shell.footerHow")],
              [paths.requestStatusLookup, t("shell.footerStatus")],
              [paths.faq, t("shell.footerFaq")],
            ]}
          />
          <Column
            title={t("shell.footerNonprofits")}
            links={[
              [paths.nonprofitLogin, t("shell.footerLogin")],
              [paths.pricing, t("shell.footerPricing")],
              [paths.features, t("shell.footerFeatures")],
              [paths.resourceLibrary, t("shell.footerResources")],
            ]}
          />
          <div>
            <h2>{t("shell.footerContact")}</h2>
            <ul>
              <li>
                {supportEmail ? (
                  <a className="break-all" href={`mailto:${supportEmail}`}>
                    {supportEmail}
                  </a>
                ) : (
                  <span className="block min-h-[2.125rem]" />
                )}
              </li>
            </ul>
            <ul aria-label={t("shell.footerSocial")} className="flex flex-wrap gap-x-4">
              {SOCIAL.map(([name, href]) => (
                <li key={name}>
                  <a href={href} rel="noopener noreferrer me">
                    {name}
                  </a>
                </li>
              ))}
            </ul>
            <p className="faint small">{t("shell.footerDanger")}</p>
          </div>
        </div>
        <TranslationNote className="small mt-6" />
        <div className="footer-end">
          <span className="push">{t("shell.copyright", { year: YEAR })}</span>
          <Link to={paths.privacy}>{t("shell.footerPrivacy")}</Link>
          <Link to={paths.terms}>{t("shell.footerTerms")}</Link>
          <Link to={paths.accessibility}>{t("shell.footerAccessibility")}</Link>
        </div>
      </div>
    </footer>
  );
}
