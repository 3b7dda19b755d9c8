/**
 * The landing page as markup, for `scripts/prerender.mjs`: what a visitor sees before the first script has run. Only the
 * signed-out page; `public/theme.js` decides whether it is shown, and the app puts itself in its place.
 */
import { renderToStaticMarkup } from "react-dom/server";
import { StaticRouter } from "react-router-dom";
import { SessionContext, type Session } from "@/lib/session";
import "@/messages/en/shell";
import { SiteHeader } from "./app/layouts/site-header";
import { paths } from "./app/paths";
import { Component as Home } from "./app/routes/public/home";

const nothing = () => Promise.resolve();
const visitor: Session = {
  status: "signed-out",
  error: null,
  ended: null,
  user: null,
  organization: null,
  selectedNonprofit: null,
  refresh: nothing,
  signOut: nothing,
  selectNonprofit: nothing,
  forgetEnd: () => undefined,
};

export const landing = (): string =>
  renderToStaticMarkup(
    <StaticRouter location={paths.home}>
      <SessionContext value={visitor}>
        <SiteHeader />
        <div className="flex flex-1 flex-col">
          <Home />
        </div>
      </SessionContext>
    </StaticRouter>,
  );
