/** The team's table: search, and for admins Edit, Activate/Deactivate and 'Send again'. */
import { useQuery } from "@tanstack/react-query";
import { useQueryState } from "nuqs";
import { useState } from "react";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { DataTable, type Column } from "@/components/data-table";
import { QueryView } from "@/components/query-view";
import { SearchField } from "@/components/search-field";
import { EmptyState } from "@/components/states";
import { Avatar } from "@/components/ui/avatar";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { errorMessage } from "@/lib/errors";
import { formatDate } from "@/lib/format";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { parseAsSearch, replacing } from "@/lib/url-state";
import { useFailureToast } from "@/lib/use-failure-toast";
import { t } from "@/messages";
import "@/messages/en/team";
import { teamQuery, useChangeMember, useResendInvitation, type Member } from "../api";
import { EditMember } from "./member-dialogs";
import { MemberBadge } from "./member-badge";

export interface TeamListProps {
  nonprofitId: string;
  organizationName: string;
  /** The reader is an admin. */
  mayChange: boolean;
  /** The reader's account, to mark their own line. */
  userId: string;
}

const nameOf = (member: Member) => member.full_name || member.email;

/** Members whose name or address holds what was typed, whatever the case. */
export function findMembers(members: readonly Member[], search: string): Member[] {
  const wanted = search.trim().toLocaleLowerCase();
  return members.filter((member) => `${member.full_name} ${member.email}`.toLocaleLowerCase().includes(wanted));
}

interface Acts {
  onEdit: (member: Member) => void;
  onActivate: (member: Member) => void;
  onDeactivate: (member: Member) => void;
  onResend: (member: Member) => void;
  /** The member whose invitation is being sent again. */
  resending: string | null;
}

function MemberActs({ member, acts }: { member: Member; acts: Acts }) {
  const name = nameOf(member);
  const invited = member.user_id === "pending";
  return (
    <span className="acts">
      <Button variant="quiet" aria-label={t("team.editNamed", { name })} onClick={() => acts.onEdit(member)}>
        {t("team.edit")}
      </Button>
      {member.is_active && invited ? (
        <Button
          variant="quiet"
          aria-label={t("team.sendAgainNamed", { name })}
          busy={acts.resending === member.id}
          onClick={() => acts.onResend(member)}
        >
          {t("team.sendAgain")}
        </Button>
      ) : null}
      {member.is_active ? (
        <Button
          variant="quiet"
          aria-label={t("team.deactivateNamed", { name })}
          onClick={() => acts.onDeactivate(member)}
        >
          {t("team.deactivate")}
        </Button>
      ) : (
        <Button variant="quiet" aria-label={t("team.activateNamed", { name })} onClick={() => acts.onActivate(member)}>
          {t("team.activate")}
        </Button>
      )}
    </span>
  );
}

function teamColumns(userId: string, acts: Acts | null): Column<Member>[] {
  const columns: Column<Member>[] = [
    {
      key: "name",
      header: t("team.columnName"),
      card: "wide",
      cell: (member) => (
        <span className="person">
          <Avatar name={nameOf(member)} />
          <span>
            <strong>{nameOf(member)}</strong>
            {member.user_id === userId ? <span className="text-soft"> {t("team.you")}</span> : null}
            <br />
            <span className="text-sm text-soft">{member.email}</span>
          </span>
        </span>
      ),
    },
    { key: "role", header: t("team.columnRole"), cell: (member) => t(`team.role.${member.role}`) },
    { key: "status", header: t("team.columnStatus"), card: "badge", cell: (member) => <MemberBadge member={member} /> },
    {
      key: "joined",
      header: t("team.columnJoined"),
      card: "hide",
      cell: (member) => <span className="num">{formatDate(member.joined_at ?? member.created_at)}</span>,
    },
  ];
  if (acts) {
    columns.push({
      key: "actions",
      header: t("team.columnActions"),
      align: "right",
      card: "wide",
      cell: (member) => <MemberActs member={member} acts={acts} />,
    });
  }
  return columns;
}

export function TeamList({ nonprofitId, organizationName, mayChange, userId }: TeamListProps) {
  const [search, setSearch] = useQueryState("q", parseAsSearch.withOptions(replacing));
  const query = useQuery(teamQuery(nonprofitId));
  useFailureToast(query.isError, t("team.errorTitle"), t("team.failed"));
  const change = useChangeMember(nonprofitId);
  const { refresh } = useSession();
  const resend = useResendInvitation(nonprofitId);
  const [editing, setEditing] = useState<Member | null>(null);
  const [leaving, setLeaving] = useState<Member | null>(null);

  const failed = (error: unknown) =>
    toast({
      variant: "destructive",
      title: t("team.updateErrorTitle"),
      description: errorMessage(error, "team.updateError"),
    });
  const setActive = (member: Member, is_active: boolean) =>
    change.mutate(
      { id: member.id, is_active },
      {
        onSuccess: () => {
          setLeaving(null);
          const name = nameOf(member);
          toast(
            is_active
              ? { title: t("team.activatedTitle"), description: t("team.activatedBody", { name }) }
              : { title: t("team.deactivatedTitle"), description: t("team.deactivatedBody", { name }) },
          );
          // the reader has left
          if (member.user_id === userId) void refresh().catch(() => undefined);
        },
        onError: failed,
      },
    );
  const acts: Acts = {
    onEdit: setEditing,
    onActivate: (member) => setActive(member, true),
    onDeactivate: setLeaving,
    resending: resend.isPending ? resend.variables : null,
    onResend: (member) =>
      resend.mutate(member.id, {
        onSuccess: () =>
          toast({ title: t("team.resentTitle"), description: t("team.resentBody", { email: member.email }) }),
        onError: (error) =>
          toast({ variant: "destructive", title: t("team.resendErrorTitle"), description: errorMessage(error) }),
      }),
  };

  return (
    <div className="grid gap-5">
      <div className="max-w-sm">
        <SearchField
          aria-label={t("team.searchLabel")}
          placeholder={t("team.searchHint")}
          value={search}
          // a team is searched in the page
          restMs={0}
          onSearch={(words) => void setSearch(words)}
        />
      </div>
      <QueryView
        query={query}
        failedTitle={t("team.failedTitle")}
        empty={<EmptyState title={t("team.emptyTitle")}>{t("team.emptyBody")}</EmptyState>}
      >
        {(members) => {
          const found = findMembers(members, search);
          return found.length === 0 ? (
            <EmptyState
              title={t("team.nothingFoundTitle")}
              actions={<Button onClick={() => void setSearch(null)}>{t("team.clearSearch")}</Button>}
            >
              {t("team.nothingFoundBody")}
            </EmptyState>
          ) : (
            <DataTable
              className="team"
              rows={found}
              columns={teamColumns(userId, mayChange ? acts : null)}
              rowKey={(member) => member.id}
              caption={t("team.caption", { name: organizationName })}
            />
          );
        }}
      </QueryView>
      <Dialog open={editing !== null} onOpenChange={(open) => (open ? undefined : setEditing(null))}>
        {editing ? (
          <EditMember nonprofitId={nonprofitId} userId={userId} member={editing} onClose={() => setEditing(null)} />
        ) : null}
      </Dialog>
      <ConfirmDialog
        open={leaving !== null}
        onOpenChange={(open) => (open ? undefined : setLeaving(null))}
        title={t("team.deactivateTitle", { name: leaving ? nameOf(leaving) : "" })}
        description={t(leaving?.user_id === userId ? "team.deactivateSelfBody" : "team.deactivateBody")}
        confirmLabel={t("team.deactivate")}
        busyLabel={t("team.deactivating")}
        busy={change.isPending}
        onConfirm={() => {
          if (leaving) setActive(leaving, false);
        }}
      />
    </div>
  );
}
