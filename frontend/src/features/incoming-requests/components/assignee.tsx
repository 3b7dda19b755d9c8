/** The assignee of a request, and handing it over. */
import { useId, useState } from "react";
import { Button } from "@/components/ui/button";
import { Select } from "@/components/ui/select";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { useAssign } from "../api";
import type { VisibleRequest } from "../types";

/** While a decision is open. */
export const canHandOver = ({ part, request }: VisibleRequest): boolean =>
  (part === "open" || part === "claimed") && (request.status === "pending" || request.status === "processing");

/** A select cannot hold an empty value. */
const NOBODY = "nobody";

export function Assignee({ opened, nonprofitId }: { opened: VisibleRequest; nonprofitId: string }) {
  const { request, assigned_to: assigned, colleagues } = opened;
  const now = assigned?.id ?? NOBODY;
  const [wanted, setWanted] = useState<string | null>(null);
  const assign = useAssign({ nonprofitId, requestId: request.id });
  const id = useId();
  const chosen = wanted ?? now;

  const handOver = () =>
    assign.mutate(chosen === NOBODY ? null : chosen, {
      onSuccess: ({ assigned_to: next }) => {
        setWanted(null);
        toast({
          title: next ? t("incoming.assigned", { name: next.name }) : t("incoming.assignedNobody"),
          description: t("incoming.assignedBody", { number: request.request_number }),
        });
      },
      onError: (error) =>
        toast({ variant: "destructive", title: t("incoming.assignFailed"), description: errorMessage(error) }),
    });

  return (
    <section className="field">
      <h2 className="mb-1 text-lg">
        <label htmlFor={id}>{t("incoming.assignTitle")}</label>
      </h2>
      <span className="hint" id={`${id}-hint`}>
        {t("incoming.assignHint")}
      </span>
      <Select
        id={id}
        aria-describedby={`${id}-hint`}
        value={chosen}
        onChange={setWanted}
        options={[
          { value: NOBODY, label: t("incoming.assignNobody") },
          ...colleagues.map(({ id: value, name, you }) => ({
            value,
            label: you ? t("incoming.assignYou", { name }) : name,
          })),
        ]}
      />
      {chosen === now ? null : (
        <Button
          className="mt-2 justify-self-start"
          busy={assign.isPending}
          busyLabel={t("incoming.assignSaving")}
          onClick={handOver}
        >
          {t(
            chosen === NOBODY
              ? "incoming.assignFree"
              : colleagues.some(({ id, you }) => you && id === chosen)
                ? "incoming.assignTake"
                : "incoming.assignSave",
          )}
        </Button>
      )}
    </section>
  );
}
