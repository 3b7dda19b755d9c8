import { lazy, Suspense, useEffect } from "react";
import { Outlet, ScrollRestoration, useLocation, useNavigate } from "react-router-dom";
import { unsentRequest } from "@/lib/stored";
import { t } from "@/messages";
import { firstWords } from "@/messages/locale";
import "@/messages/en/shell";
import "@/styles/serif.css";
import { loginAfterFailure } from "../paths";
import { FocusOnNavigation } from "./focus";
import { SiteFooter } from "./site-footer";
import { SiteHeader } from "./site-header";

/** A failed mailed link or provider returns with the reason in the fragment, which the login page shows. */
function useAuthErrorInFragment() {
  const to = loginAfterFailure(useLocation());
  const navigate = useNavigate();
  useEffect(() => {
    if (to !== null) void navigate(to, { replace: true });
  }, [to, navigate]);
}

/** With its words, and only for whom it is. Without a connection it does not come, and the page stands without it. */
const NotSent = lazy(() =>
  firstWords()
    .then(() => import("./not-sent"))
    .catch(() => ({ default: () => null })),
);

/** Header, page, footer. */
export function SiteLayout() {
  useAuthErrorInFragment();
  const unsent = unsentRequest() !== null;
  return (
    <>
      <a className="skip" href="#main">
        {t("common.skip")}
      </a>
      <SiteHeader />
      <div className="flex flex-1 flex-col">
        {unsent ? (
          <Suspense>
            <NotSent />
          </Suspense>
        ) : null}
        <Outlet />
      </div>
      <SiteFooter />
      <FocusOnNavigation />
      <ScrollRestoration />
    </>
  );
}
