/** Both variants of the team's page: `/nonprofit-team` (managers read) and `/team-management` (admins alone). */
import { useQuery } from "@tanstack/react-query";
import { UserPlus } from "lucide-react";
import { useState } from "react";
import { useLocation } from "react-router-dom";
import { DashboardPage } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Notice } from "@/components/ui/notice";
import { teamQuery } from "@/features/team/api";
import { AddMember } from "@/features/team/components/member-dialogs";
import { ProveAddress } from "@/features/team/components/prove-address";
import { TeamList } from "@/features/team/components/team-list";
import { can, useOrganization, useSession, useUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/team";
import { paths } from "../../paths";

export function Component() {
  const session = useSession();
  const user = useUser();
  const organization = useOrganization();
  const { pathname } = useLocation();
  const team = useQuery(teamQuery(organization.id));
  const [adding, setAdding] = useState(false);
  const admin = can(session, "manage_team");
  const waiting = (team.data ?? []).filter(
    (member) => member.user_id === "pending" && member.is_active && member.invited_at === null,
  ).length;
  return (
    <DashboardPage
      title={t(pathname === paths.teamManagement ? "team.titleManagement" : "team.titleMembers")}
      lead={team.data ? t("team.lead", { count: team.data.length, name: organization.name }) : organization.name}
      action={
        admin ? (
          <Button variant="primary" onClick={() => setAdding(true)}>
            <UserPlus aria-hidden="true" />
            {t("team.add")}
          </Button>
        ) : null
      }
    >
      {admin ? null : (
        <Notice tone="info" title={t("team.managersReadTitle")}>
          {t("team.managersRead")}
        </Notice>
      )}
      {admin && !user.emailProved ? (
        <ProveAddress
          nonprofitId={organization.id}
          email={user.email}
          waiting={waiting}
          onProved={() => void session.refresh()}
        />
      ) : null}
      <TeamList nonprofitId={organization.id} organizationName={organization.name} mayChange={admin} userId={user.id} />
      <Dialog open={adding} onOpenChange={setAdding}>
        {adding ? (
          <AddMember
            nonprofitId={organization.id}
            userId={user.id}
            proved={user.emailProved}
            onClose={() => setAdding(false)}
          />
        ) : null}
      </Dialog>
    </DashboardPage>
  );
}
