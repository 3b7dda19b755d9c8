import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Pages of requesters. */
export const requesterRoutes: AppRoute[] = [
  { path: paths.requesterDashboard, lazy: () => import("./requester/dashboard") },
  { path: paths.myRequests, lazy: () => import("./requester/my-requests") },
  { path: paths.requestDrafts, lazy: () => import("./requester/drafts") },
  { path: paths.request(":id"), lazy: () => import("./requester/request-detail") },
  { path: paths.requestDetails(":id"), lazy: () => import("./requester/request-detail") },
  { path: paths.requestStatus(":id"), lazy: () => import("./requester/request-status") },
  {
    path: paths.selectNonprofit,
    lazy: () => import("./requester/select-nonprofit"),
    access: { withoutSelectedNonprofit: true },
    layout: "site",
  },
];
