import { useState } from "react";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Button } from "@/components/ui/button";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/organization";
import { useCloseOrganization, type OrganizationDetails } from "../api";

/** The last thing on the page: ends the organization. */
export function CloseOrganization({ details, onClosed }: { details: OrganizationDetails; onClosed: () => void }) {
  const [asking, setAsking] = useState(false);
  const close = useCloseOrganization(details.id);
  return (
    <section className="mt-8 max-w-2xl border-t border-line pt-6">
      <h2 className="text-lg">{t("organization.close")}</h2>
      <p className="mt-1 mb-4 text-soft">{t("organization.closeHint")}</p>
      <Button variant="dangerQuiet" onClick={() => setAsking(true)}>
        {t("organization.close")}
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t("organization.closeTitle", { name: details.name })}
        description={t("organization.closeBody")}
        confirmLabel={t("organization.close")}
        busyLabel={t("organization.closing")}
        busy={close.isPending}
        onConfirm={() =>
          close.mutate(undefined, {
            onSuccess: () => {
              setAsking(false);
              toast({ title: t("organization.closed"), description: t("organization.closedToastBody") });
              onClosed();
            },
            onError: (error) =>
              toast({
                variant: "destructive",
                title: t("organization.saveErrorTitle"),
                description: errorMessage(error),
              }),
          })
        }
      />
    </section>
  );
}
