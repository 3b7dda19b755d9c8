import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Open to everyone, inside header and footer. */
export const publicRoutes: AppRoute[] = [
  // `public/theme.js` asks for the files of pages that stand in index.html together with the app's
  { path: paths.home, lazy: () => import("./public/home"), static: true, words: "first" },
  { path: paths.aboutUs, lazy: () => import("./public/about-us"), static: true },
  { path: paths.howItWorks, lazy: () => import("./public/how-it-works"), static: true },
  { path: paths.forNonprofits, lazy: () => import("./public/for-nonprofits"), static: true },
  { path: paths.faq, lazy: () => import("./public/faq"), static: true },
  { path: paths.features, lazy: () => import("./public/features"), static: true },
  { path: paths.partners, lazy: () => import("./public/partners"), static: true },
  { path: paths.resourceLibrary, lazy: () => import("./public/resource-library"), static: true },
  { path: paths.privacy, lazy: () => import("./public/privacy"), static: true },
  { path: paths.terms, lazy: () => import("./public/terms"), static: true },
  { path: paths.accessibility, lazy: () => import("./public/accessibility"), static: true },
  { path: "/blog/:id", lazy: () => import("./public/blog-post"), static: true },
  { path: paths.blog, lazy: () => import("./public/blog") },
  { path: paths.pricing, lazy: () => import("./public/pricing") },
  { path: paths.newsletter, lazy: () => import("./public/newsletter") },
  { path: paths.unsubscribe, lazy: () => import("./public/unsubscribe") },
  { path: paths.login, lazy: () => import("./public/login") },
  { path: paths.nonprofitLogin, lazy: () => import("./public/login") },
  { path: paths.signup, lazy: () => import("./public/signup") },
  { path: paths.nonprofitSignup, lazy: () => import("./public/nonprofit-signup") },
  { path: paths.forgotPassword, lazy: () => import("./public/forgot-password") },
  { path: paths.resetPassword, lazy: () => import("./public/reset-password") },
  { path: "/nonprofit/:id", lazy: () => import("./public/nonprofit-profile") },
  { path: paths.teamInvitation, lazy: () => import("./public/team-invitation") },
  { path: paths.submitRequest, lazy: () => import("./public/request-form"), static: true, words: "ask" },
  { path: paths.requestSubmission, lazy: () => import("./public/request-form"), static: true, words: "ask" },
  { path: paths.requestStatusLookup, lazy: () => import("./public/request-status"), words: "first" },
  { path: paths.openRequest, lazy: () => import("./public/open-request") },
  { path: paths.notFound, lazy: () => import("./public/not-found"), static: true, words: "first" },
];
