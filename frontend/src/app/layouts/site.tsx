import { useEffect } from "react";
import { Outlet, ScrollRestoration, useLocation, useNavigate } from "react-router-dom";
import { t } from "@/messages";
import "@/messages/en/shell";
import "@/styles/serif.css";
import { paths } from "../paths";
import { FocusOnNavigation } from "./focus";
import { SiteFooter } from "./site-footer";
import { SiteHeader } from "./site-header";

/** A failed mailed link or provider returns with the reason in the fragment, which the login page shows. */
function useAuthErrorInFragment() {
  const { hash, pathname } = useLocation();
  const navigate = useNavigate();
  useEffect(() => {
    if (!/[#&]error(?:_description)?=/.test(hash) || pathname === paths.resetPassword) return;
    const fragment = new URLSearchParams(hash.slice(1));
    const query = new URLSearchParams({ error: fragment.get("error") ?? "" });
    const description = fragment.get("error_description");
    if (description) query.set("error_description", description);
    void navigate(`${paths.login}?${query}`, { replace: true });
  }, [hash, pathname, navigate]);
}

/** Header, page, footer. */
export function SiteLayout() {
  useAuthErrorInFragment();
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
