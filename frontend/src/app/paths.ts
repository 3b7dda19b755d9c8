/** Every path of the app. Links and redirects are built only here. */

/** `withId("/blog")(":id")` is the route table's pattern; every other id is put in encoded. */
const withId = (base: string) => (id: string) => `${base}/${id === ":id" ? id : encodeURIComponent(id)}`;

export const paths = {
  // public
  home: "/",
  login: "/login",
  signup: "/signup",
  forgotPassword: "/forgot-password",
  resetPassword: "/reset-password",
  aboutUs: "/about-us",
  howItWorks: "/how-it-works",
  forNonprofits: "/for-nonprofits",
  faq: "/faq",
  blog: "/blog",
  blogPost: withId("/blog"),
  features: "/features",
  partners: "/partners",
  pricing: "/pricing",
  nonprofitSignup: "/nonprofit-signup",
  requestSubmission: "/request-submission",
  submitRequest: "/submit-request",
  draft: (id: string) => `/submit-request?draft=${encodeURIComponent(id)}`,
  privacy: "/privacy",
  terms: "/terms",
  accessibility: "/accessibility",
  notFound: "/404",
  resourceLibrary: "/resource-library",
  requestStatusLookup: "/request-status",
  /** Where a guest opens a request, with the number from a mail. */
  openRequest: "/open-request",
  openRequestOf: (number: string) => `/open-request?number=${encodeURIComponent(number)}`,
  nonprofitLogin: "/nonprofit-login",
  nonprofitProfile: withId("/nonprofit"),
  teamInvitation: "/team-invitation",
  newsletter: "/newsletter",
  unsubscribe: "/unsubscribe",

  // any signed-in user
  dashboard: "/dashboard",
  profileSettings: "/profile-settings",
  userProfile: "/user-profile",
  profile: "/profile",
  notifications: "/notifications",
  roleSelection: "/role-selection",

  // requester
  requesterDashboard: "/requester-dashboard",
  request: withId("/request"),
  requestDetails: withId("/request-details"),
  myRequests: "/my-requests",
  requestDrafts: "/request-drafts",
  requestStatus: withId("/request-status"),
  selectNonprofit: "/select-nonprofit",

  // nonprofit
  nonprofitDashboard: "/nonprofit-dashboard",
  nonprofitOnboarding: "/nonprofit-onboarding",
  nonprofitRoleSelection: "/nonprofit-role-selection",
  nonprofitRequests: "/nonprofit-requests",
  nonprofitRequest: withId("/nonprofit-request"),
  nonprofitRequestDetails: withId("/nonprofit-request-details"),
  nonprofitSettings: "/nonprofit-settings",
  nonprofitTeam: "/nonprofit-team",
  nonprofitBudget: "/nonprofit-budget",
  budget: "/budget",
  donorCommunication: "/nonprofit-donor-communication",
  teamManagement: "/team-management",
  categoriesManagement: "/categories-management",

  // donor
  donorDashboard: "/donor-dashboard",
  /** The dashboard with the pledge open. */
  donate: "/donor-dashboard?donate",
} as const;

/** A page that continues to `next` afterwards: login, sign-up, a required choice. */
export const withNext = (path: string, next: string | null) =>
  next === null || landings.has(next) ? path : `${path}?next=${encodeURIComponent(next)}`;

/** Default destinations. */
const landings: ReadonlySet<string> = new Set([paths.dashboard, paths.requesterDashboard, paths.nonprofitDashboard]);

/** The login page that leads back afterwards. */
export const loginThen = (next: string) => withNext(paths.login, next);

/**
 * The login page with the reason why a mailed link or a provider failed, and with the page that it should have led to. The auth API puts the
 * reason into the fragment. Null if there is none.
 */
export function loginAfterFailure({
  pathname,
  search,
  hash,
}: Pick<Location, "pathname" | "search" | "hash">): string | null {
  if (!/[#&]error(?:_description)?=/.test(hash) || pathname === paths.resetPassword) return null;
  const fragment = new URLSearchParams(hash.slice(1));
  const before =
    pathname === paths.login
      ? safeNext(new URLSearchParams(search).get("next"))
      : pathname === paths.home
        ? null
        : pathname + search;
  const query = new URLSearchParams(loginThen(before ?? paths.dashboard).split("?")[1]);
  query.set("error", fragment.get("error") ?? "");
  for (const name of ["error_code", "error_description"]) {
    const told = fragment.get(name);
    if (told) query.set(name, told);
  }
  return `${paths.login}?${query}`;
}

/** A `next` from the address bar as a path of this site; null if it leads elsewhere. */
export function safeNext(next: string | null): string | null {
  if (!next?.startsWith("/")) return null;
  try {
    // as the browser reads it: it drops tabs and treats a backslash as a slash
    const here = "https://here.invalid";
    const url = new URL(next, here);
    return url.origin === here ? url.pathname + url.search + url.hash : null;
  } catch {
    return null;
  }
}
