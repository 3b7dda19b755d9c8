/** Live updates of the working pages, and the notice shown when they are unavailable. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { WifiOff } from "lucide-react";
import { follow, POLL_SECONDS, useLiveState, type LiveTable } from "@/lib/live";
import { reads } from "@/lib/query-keys";
import type { AppUser, Organization } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/shell";

/** Short gaps, such as a server restart, are not reported. */
const SILENT_MS = 2_000;

export function liveTables(
  { id, role }: Pick<AppUser, "id" | "role">,
  organization: Pick<Organization, "id"> | null,
): LiveTable[] {
  const mine = `user_id=eq.${id}`;
  /** Each step of a request and each message also creates a notification. */
  const told =
    role === "requester" ? [reads.myRequests] : role === "donor" ? [reads.donorDashboard] : [reads.nonprofitDashboard];
  const tables: LiveTable[] = [{ table: "notifications", filter: mine, keys: [reads.notifications, ...told] }];
  if (role === "requester") tables.push({ table: "requests", filter: mine, keys: [reads.myRequests] });
  if (organization) {
    const ours = `nonprofit_id=eq.${organization.id}`;
    const of = (key: readonly string[]) => [...key, organization.id];
    tables.push(
      {
        table: "request_nonprofits",
        filter: ours,
        keys: [of(reads.incomingRequests), of(reads.nonprofitDashboard), of(reads.budget)],
      },
      { table: "donor_messages", filter: ours, keys: [of(reads.donorMessages)] },
      { table: "donor_message_replies", filter: ours, keys: [of(reads.donorMessages)] },
    );
  }
  return tables;
}

export function useLiveUpdates(user: AppUser | null, organization: Organization | null): void {
  const cache = useQueryClient();
  const id = user?.id;
  const role = user?.role ?? null;
  const organizationId = organization?.id;
  useEffect(() => {
    if (id === undefined) return;
    return follow(cache, liveTables({ id, role }, organizationId === undefined ? null : { id: organizationId }));
  }, [cache, id, role, organizationId]);
}

/** Says that live updates are unavailable, and how the page gets changes meanwhile. */
export function LiveNote() {
  const down = useLiveState() === "down";
  const [shown, setShown] = useState(false);
  if (!down && shown) setShown(false);
  useEffect(() => {
    if (!down) return;
    const timer = setTimeout(() => setShown(true), SILENT_MS);
    return () => clearTimeout(timer);
  }, [down]);
  return (
    <p className="live-note no-print" role="status">
      {shown ? (
        <span>
          <WifiOff aria-hidden="true" />
          {t("shell.livePaused", { seconds: POLL_SECONDS })}
        </span>
      ) : null}
    </p>
  );
}
