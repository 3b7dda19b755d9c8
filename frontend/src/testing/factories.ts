import type { AppUser, Organization, Session } from "@/lib/session";

export function aUser(user: Partial<AppUser> = {}): AppUser {
  return {
    id: "11111111-1111-4111-8111-111111111111",
    email: "marie@mail.example",
    role: "requester",
    nonprofitRole: null,
    fullName: "Marie-Thérèse Désir",
    phoneNumber: "",
    textConsent: false,
    photoUrl: null,
    emailProved: true,
    ...user,
  };
}

export function anOrganization(organization: Partial<Organization> = {}): Organization {
  return { id: "np-001", name: "Harbor Relief Fund", role: "admin", logoPath: null, ...organization };
}

/** A signed-in requester with a selected nonprofit, unless told otherwise. */
export function aSession(session: Partial<Session> = {}): Session {
  return {
    status: "signed-in",
    error: null,
    ended: null,
    user: aUser(),
    organization: null,
    selectedNonprofit: { id: "np-001", name: "Harbor Relief Fund" },
    refresh: () => Promise.resolve(),
    signOut: () => Promise.resolve(),
    forgetEnd: () => undefined,
    selectNonprofit: () => Promise.resolve(),
    ...session,
  };
}
