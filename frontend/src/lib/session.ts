/** The session for the whole app, provided by `features/session`. */
import { createContext, use } from "react";

export type AccountRole = "requester" | "nonprofit" | "donor";
export type NonprofitRole = "admin" | "manager" | "employee" | "volunteer";

export interface AppUser {
  id: string;
  email: string;
  /** Null when no role was ever recorded (the guard then ends the session). */
  role: AccountRole | null;
  nonprofitRole: NonprofitRole | null;
  fullName: string;
  phoneNumber: string;
  /** Whether they said yes to texts. */
  textConsent: boolean;
  photoUrl: string | null;
  /** True once a mailed code or link showed that the address is theirs. */
  emailProved: boolean;
}

/** The organization this person works for: the one they own, or the one whose active team they are on. */
export interface Organization {
  id: string;
  name: string;
  /** The role in it, from the database. This, not `nonprofitRole`, gives rights. */
  role: NonprofitRole;
  /** Object name in the public bucket `logos`. */
  logoPath: string | null;
}

export interface SelectedNonprofit {
  id: string;
  name: string;
}

export interface Session {
  /** `loading` until the stored session was read and its role known; `failed` when that could not be read. */
  status: "loading" | "failed" | "signed-out" | "signed-in";
  /** Why reading failed. */
  error: unknown;
  /** How the last session of this visit ended: by 'Logout' or by expiry. */
  ended: "choice" | "expired" | null;
  user: AppUser | null;
  organization: Organization | null;
  selectedNonprofit: SelectedNonprofit | null;
  /** Reads role, profile and organization again (after a role choice, onboarding, an accepted invitation). */
  refresh: () => Promise<void>;
  /** Ends the session and drops the person's queries. Throws if the server cannot be reached. */
  signOut: () => Promise<void>;
  /** Called when the login page is shown: from then on guards treat the visitor as signed out. */
  forgetEnd: () => void;
  /** Keeps the requester's nonprofit in this browser and, signed in, on their profile. */
  selectNonprofit: (nonprofit: SelectedNonprofit) => Promise<void>;
}

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = use(SessionContext);
  if (!session) throw new Error("useSession is used outside SessionProvider");
  return session;
}

/** The signed-in user; for screens behind the guard, where there always is one. */
export function useUser(): AppUser {
  const { user } = useSession();
  if (!user) throw new Error("useUser is used on a page without the guard");
  return user;
}

/** The organization; for screens behind a guard that lets only its members in. */
export function useOrganization(): Organization {
  const { organization } = useSession();
  if (!organization) throw new Error("useOrganization is used on a page without the guard");
  return organization;
}

export type Ability =
  | "act_on_requests"
  | "view_budget"
  | "view_team"
  | "manage_team"
  | "edit_organization"
  | "manage_categories"
  | "message_donors";

const abilities: Record<Ability, readonly NonprofitRole[]> = {
  act_on_requests: ["admin", "manager"],
  view_budget: ["admin", "manager"],
  view_team: ["admin", "manager"],
  manage_team: ["admin"],
  edit_organization: ["admin"],
  manage_categories: ["admin", "manager"],
  message_donors: ["admin", "manager"],
};

/** For showing or hiding only: the database's policies protect the data. */
export function can(session: Pick<Session, "organization">, ability: Ability): boolean {
  return session.organization !== null && abilities[ability].includes(session.organization.role);
}
