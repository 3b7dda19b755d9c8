/**
 * The screens of `prerender.tsx`, only as a signed-out visitor finds them; `public/theme.js` decides whether one is shown, and the
 * app puts itself in its place. Fields cannot be written in before: what is typed would be lost.
 */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { NuqsAdapter } from "nuqs/adapters/react-router/v7";
import type { ComponentType } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { StaticRouter } from "react-router-dom";
import { SessionContext, type Session } from "@/lib/session";
import "@/messages/en/shell";
import { SiteFooter } from "./app/layouts/site-footer";
import { SiteHeader } from "./app/layouts/site-header";
import { paths } from "./app/paths";
import { Component as Home } from "./app/routes/public/home";
import { Component as Login } from "./app/routes/public/login";
import { Component as RequestForm } from "./app/routes/public/request-form";
import { Component as RequestStatus } from "./app/routes/public/request-status";

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

/** By the name that `public/theme.js` gives the address. */
const pages: Record<string, [path: string, Screen: ComponentType]> = {
  home: [paths.home, Home],
  ask: [paths.requestSubmission, RequestForm],
  login: [paths.login, Login],
  lookup: [paths.requestStatusLookup, RequestStatus],
};

function markup(name: string, path: string, Screen: ComponentType): string {
  // asks nobody: there is no server while building
  const queries = new QueryClient({ defaultOptions: { queries: { enabled: false, retry: false } } });
  const page = renderToStaticMarkup(
    <StaticRouter location={path}>
      <SessionContext value={visitor}>
        <QueryClientProvider client={queries}>
          <NuqsAdapter>
            <SiteHeader />
            <div className="flex flex-1 flex-col">
              <Screen />
            </div>
            <SiteFooter />
          </NuqsAdapter>
        </QueryClientProvider>
      </SessionContext>
    </StaticRouter>,
    { identifierPrefix: `${name}-` },
  );
  return page.replaceAll("<form ", "<form inert ").replaceAll("<input ", "<input readonly ");
}

/** What stands in `#root` until the app does. */
const standing = (name: string, content: string) => `<div class="before-app" data-at="${name}">${content}</div>`;

/** `nowhere` is for all other addresses. */
export const markups = (): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(pages).map(([name, [path, Screen]]) => [name, standing(name, markup(name, path, Screen))]),
  ),
  nowhere: standing("nowhere", ""),
});
