import { useMutation, useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useId } from "react";
import { Button } from "@/components/ui/button";
import { cn } from "@/lib/cn";
import { downloadCsv } from "@/lib/csv";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { exportRows, incomingListQuery } from "../api";
import { incomingCsv } from "../csv";
import { useIncomingFilters } from "./incoming-list";

/**
 * Exports all filtered rows as a file. Disabled until the list has loaded, so that a failed load is not an empty file.
 */
export function ExportButton({ nonprofitId, className }: { nonprofitId: string; className?: string }) {
  const { filters } = useIncomingFilters();
  const list = useQuery(incomingListQuery(nonprofitId, filters));
  const why = useId();
  const failed = list.isError && list.data === undefined;
  const job = useMutation({
    mutationFn: () => exportRows(nonprofitId, filters),
    onSuccess: (rows) => {
      downloadCsv(t("incoming.exportFile", { date: new Date().toISOString().slice(0, 10) }), incomingCsv(rows));
      toast({ title: t("incoming.exported"), description: t("incoming.exportedBody", { count: rows.length }) });
    },
    onError: (error) =>
      toast({ variant: "destructive", title: t("incoming.exportFailed"), description: errorMessage(error) }),
  });
  return (
    <div className={cn("grid justify-items-start gap-2 md:justify-items-end", className)}>
      <Button
        busy={job.isPending}
        busyLabel={t("incoming.exporting")}
        disabled={list.data === undefined}
        aria-describedby={failed ? why : undefined}
        onClick={() => job.mutate()}
      >
        <Download aria-hidden="true" />
        {t("incoming.exportCsv")}
      </Button>
      {failed ? (
        <p id={why} className="small text-soft">
          {t("incoming.exportNeedsList")}
        </p>
      ) : null}
    </div>
  );
}
