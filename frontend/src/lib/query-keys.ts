/**
 * The prefixes of all query keys. A write or a change elsewhere can invalidate reads of several features; each feature
 * builds its keys on these and refers to others by them.
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
