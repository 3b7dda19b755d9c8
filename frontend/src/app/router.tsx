/** The route table: one array per audience, each behind its guard and inside its layout. */
import { createBrowserRouter, Navigate, type RouteObject } from "react-router-dom";
import { LoadingView } from "@/components/loading-view";
import { SiteLayout } from "./layouts/site";
import { allWords, firstWords } from "@/messages/locale";
import type { Access } from "./guard";
import { paths } from "./paths";
import { RouteError } from "./route-error";
import { accountRoutes } from "./routes/account";
import { donorRoutes } from "./routes/donor";
import { nonprofitRoutes } from "./routes/nonprofit";
import { publicRoutes } from "./routes/public";
import { requesterRoutes } from "./routes/requester";
import type { AppRoute } from "./routes/types";

/** Guards of whole audiences; a route's own `access` overrides them. */
export const audiences: Record<
  "account" | "requester" | "nonprofit" | "donor",
  { routes: AppRoute[]; access: Access }
> = {
  account: { routes: accountRoutes, access: {} },
  requester: { routes: requesterRoutes, access: { roles: ["requester"] } },
  nonprofit: { routes: nonprofitRoutes, access: { roles: ["nonprofit"] } },
  donor: { routes: donorRoutes, access: { roles: ["donor"] } },
};

/** The route's module, after the words that it reads while it loads. */
function worded({ words, lazy }: AppRoute): AppRoute["lazy"] {
  if (words === "ask") return lazy;
  return () => (words === "first" ? firstWords() : allWords()).then(lazy);
}

const open = (route: AppRoute): RouteObject => ({ path: route.path, lazy: worded(route) });

const guarded = (access: Access) => (route: AppRoute) => ({
  path: route.path,
  lazy: async () => {
    const { Guarded } = await import("./guarded");
    return { element: <Guarded access={{ ...access, ...route.access }} /> };
  },
  children: [{ index: true, lazy: worded(route) }],
});

const behind = Object.values(audiences).flatMap(({ routes, access }) =>
  routes.map((route) => ({ layout: route.layout ?? "shell", object: guarded(access)(route) })),
);
const inLayout = (layout: "site" | "shell") =>
  behind.filter((entry) => entry.layout === layout).map((entry) => entry.object);

const data = (children: RouteObject[]): RouteObject => ({ lazy: () => import("./layouts/data"), children });
const inSite = publicRoutes.filter((route) => route.layout !== "shell");

export const routes: RouteObject[] = [
  {
    errorElement: <RouteError />,
    hydrateFallbackElement: <LoadingView />,
    children: [
      {
        element: <SiteLayout />,
        errorElement: <RouteError />,
        children: [
          ...inSite.filter((route) => route.static).map(open),
          data([...inSite.filter((route) => !route.static).map(open), ...inLayout("site")]),
          { path: "*", element: <Navigate to={paths.notFound} replace /> },
        ],
      },
      data([
        {
          lazy: () => import("./layouts/shell"),
          errorElement: <RouteError />,
          children: [...publicRoutes.filter((route) => route.layout === "shell").map(open), ...inLayout("shell")],
        },
      ]),
    ],
  },
];

export const createRouter = () => createBrowserRouter(routes);
