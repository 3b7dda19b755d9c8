import { useQuery } from "@tanstack/react-query";
import { DashboardPage } from "@/components/pages";
import { incomingCountsQuery } from "@/features/incoming-requests/api";
import { ExportButton } from "@/features/incoming-requests/components/export-button";
import { IncomingList, MineFilter } from "@/features/incoming-requests/components/incoming-list";
import { can, useOrganization, useSession } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { paths } from "../../paths";

export function Component() {
  const session = useSession();
  const organization = useOrganization();
  const counts = useQuery(incomingCountsQuery(organization.id));
  const second = counts.data?.processing ?? 0;
  const first = (counts.data?.due ?? 0) - second;
  const lead = counts.data
    ? [
        first > 0 ? t("incoming.leadPending", { count: first }) : null,
        second > 0 ? t("incoming.leadSecond", { count: second }) : null,
      ]
        .filter(Boolean)
        .join(" ") || t("incoming.leadNone")
    : null;
  return (
    <DashboardPage
      title={t("incoming.title")}
      lead={lead}
      action={
        <div className="actions">
          <MineFilter />
          <ExportButton className="wide-only" nonprofitId={organization.id} />
        </div>
      }
    >
      <IncomingList
        nonprofitId={organization.id}
        organizationName={organization.name}
        mayDecide={can(session, "act_on_requests")}
        href={paths.nonprofitRequest}
      />
      <ExportButton className="md:hidden" nonprofitId={organization.id} />
    </DashboardPage>
  );
}
