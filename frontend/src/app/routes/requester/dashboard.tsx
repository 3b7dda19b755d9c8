import { RequesterDashboardScreen } from "@/features/my-requests/components/dashboard-screen";
import { ClaimNotice } from "@/features/session/claim-notice";

export function Component() {
  return <RequesterDashboardScreen notice={<ClaimNotice />} />;
}
