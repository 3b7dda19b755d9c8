/** Every address of the app. Links and redirects are built here and nowhere else. */

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

/** The login page that leads back afterwards: for an expired session or a mailed invitation. */
export const loginThen = (next: string) => `${paths.login}?next=${encodeURIComponent(next)}`;

/** A `next` from the address bar, only when it stays on this site. */
export function safeNext(next: string | null): string | null {
  return next && /^\/(?![/\\])/.test(next) ? next : null;
}
