import { ScrollRestoration, Outlet } from "react-router-dom";
import { t } from "@/messages";
import "@/messages/en/shell";
import "@/styles/serif.css";
import { FocusOnNavigation } from "./focus";
import { SiteFooter } from "./site-footer";
import { SiteHeader } from "./site-header";

/** Header, page, footer. */
export function SiteLayout() {
  return (
    <>
      <a className="skip" href="#main">
        {t("common.skip")}
      </a>
      <SiteHeader />
      <div className="flex flex-1 flex-col">
        <Outlet />
      </div>
      <SiteFooter />
      <FocusOnNavigation />
      <ScrollRestoration />
    </>
  );
}
