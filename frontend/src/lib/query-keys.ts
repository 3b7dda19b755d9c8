/**
 * How the keys of all reads begin. A write or a change made elsewhere makes reads of several features old; each feature builds
 * its keys on these and names the others' by them.
 */
export const reads = {
  me: ["me"],
  budget: ["budget"],
  directory: ["directory"],
  donorDashboard: ["donor-dashboard"],
  donorMessages: ["donor-messages"],
  incomingRequests: ["incoming-requests"],
  myRequests: ["my-requests"],
  nonprofitDashboard: ["nonprofit-dashboard"],
  notifications: ["notifications"],
  requestForm: ["request-form"],
  teamInvitation: ["team-invitation"],
} as const;
