import { useQuery } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { Link } from "react-router-dom";
import { paths } from "@/app/paths";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { DashboardPage } from "@/components/pages";
import { EmptyState, FailedState, ListSkeleton } from "@/components/states";
import { StatusBadge } from "@/components/status-badge";
import { Button } from "@/components/ui/button";
import { errorMessage } from "@/lib/errors";
import { formatDateTime } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import "@/styles/requests.css";
import { draftsQuery, useDeleteDraft, type Draft } from "../api";
import { NewRequest } from "./new-request";

const nameOf = (draft: Draft) => (draft.category ? localName(draft.category) : t("myRequests.draftUntitled"));

function DraftLine({ draft, onDelete }: { draft: Draft; onDelete: () => void }) {
  const name = nameOf(draft);
  const saved = t("myRequests.draftSaved", { date: formatDateTime(draft.updated_at) });
  // two drafts may be for the same kind of help
  const which = (action: string) => `${action}, ${saved}`;
  return (
    <li className="item">
      <h2>{name}</h2>
      <StatusBadge status="draft" />
      <div className="col-span-full grid gap-2">
        <p className="line-clamp-2 text-soft">{draft.description.trim() || t("myRequests.draftNoWords")}</p>
        <p className="text-sm text-faint">{saved}</p>
        <div className="row">
          <Button asChild aria-label={which(t("myRequests.draftContinueName", { category: name }))}>
            <Link to={paths.draft(draft.id)}>{t("myRequests.draftContinue")}</Link>
          </Button>
          <Button
            variant="quiet"
            aria-label={which(t("myRequests.draftDeleteName", { category: name }))}
            onClick={onDelete}
          >
            <Trash2 aria-hidden="true" />
            {t("myRequests.draftDelete")}
          </Button>
        </div>
      </div>
    </li>
  );
}

/** Unsent requests. */
export function DraftsScreen() {
  const user = useUser();
  const drafts = useQuery(draftsQuery(user.id));
  const failed = drafts.isError;
  useEffect(() => {
    if (failed) {
      toast({
        variant: "destructive",
        title: t("myRequests.draftsFailed"),
        description: t("myRequests.draftsFailedBody"),
      });
    }
  }, [failed]);
  const remove = useDeleteDraft(user.id);
  const [asked, setAsked] = useState<Draft | null>(null);
  return (
    <DashboardPage
      title={t("myRequests.draftsTitle")}
      lead={t("myRequests.draftsLead")}
      action={<NewRequest variant={drafts.data?.length === 0 ? "plain" : "primary"} className="wide-only" />}
    >
      {drafts.isPending ? (
        <div>
          <p className="mb-4 text-soft" aria-hidden="true">
            {t("myRequests.draftsLoading")}
          </p>
          <ListSkeleton rows={3} label={t("myRequests.draftsLoading")} />
        </div>
      ) : drafts.data === undefined ? (
        <FailedState error={drafts.error} title={t("myRequests.draftsFailed")} onRetry={() => void drafts.refetch()} />
      ) : drafts.data.length === 0 ? (
        <EmptyState title={t("myRequests.draftsEmpty")} actions={<NewRequest />}>
          {t("myRequests.draftsEmptyBody")}
        </EmptyState>
      ) : (
        <ul className="list ruled" aria-label={t("myRequests.draftsTitle")}>
          {drafts.data.map((draft) => (
            <DraftLine key={draft.id} draft={draft} onDelete={() => setAsked(draft)} />
          ))}
        </ul>
      )}
      <ConfirmDialog
        open={asked !== null}
        onOpenChange={(open) => {
          if (!open) setAsked(null);
        }}
        title={t("myRequests.draftDeleteTitle")}
        description={t("myRequests.draftDeleteBody", { category: asked ? nameOf(asked) : "" })}
        confirmLabel={t("myRequests.draftDeleteConfirm")}
        busy={remove.isPending}
        onConfirm={() => {
          if (!asked) return;
          remove.mutate(asked.id, {
            onSuccess: () => {
              setAsked(null);
              toast({ title: t("myRequests.draftDeleted"), description: t("myRequests.draftDeletedBody") });
            },
            onError: (error) => {
              setAsked(null);
              toast({
                variant: "destructive",
                title: t("myRequests.draftDeleteFailed"),
                description: errorMessage(error),
              });
            },
          });
        }}
      />
    </DashboardPage>
  );
}
