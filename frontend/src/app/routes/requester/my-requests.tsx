import { MyRequestsScreen } from "@/features/my-requests/components/list-screen";
import { ClaimNotice } from "@/features/session/claim-notice";

export function Component() {
  return <MyRequestsScreen notice={<ClaimNotice />} />;
}
