import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Open to everyone, inside header and footer. */
export const publicRoutes: AppRoute[] = [
  { path: paths.home, lazy: () => import("./public/home"), static: true },
  { path: paths.login, lazy: () => import("./public/login") },
  { path: paths.nonprofitLogin, lazy: () => import("./public/login") },
  { path: paths.signup, lazy: () => import("./public/signup") },
  { path: paths.nonprofitSignup, lazy: () => import("./public/nonprofit-signup") },
  { path: paths.forgotPassword, lazy: () => import("./public/forgot-password") },
  { path: paths.resetPassword, lazy: () => import("./public/reset-password") },
  { path: "/nonprofit/:id", lazy: () => import("./public/nonprofit-profile") },
  { path: paths.teamInvitation, lazy: () => import("./public/team-invitation") },
  { path: paths.submitRequest, lazy: () => import("./public/request-form") },
  { path: paths.requestSubmission, lazy: () => import("./public/request-form") },
  { path: paths.requestStatusLookup, lazy: () => import("./public/request-status") },
  { path: paths.notFound, lazy: () => import("./public/not-found"), static: true },
];
