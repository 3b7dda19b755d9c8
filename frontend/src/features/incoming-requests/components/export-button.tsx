import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { Button } from "@/components/ui/button";
import { downloadCsv } from "@/lib/csv";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { exportRows } from "../api";
import { incomingCsv } from "../csv";
import { useIncomingFilters } from "./incoming-list";

/** Everything that the filters let through, as a file. */
export function ExportButton({ nonprofitId, className }: { nonprofitId: string; className?: string }) {
  const { filters } = useIncomingFilters();
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
    <Button className={className} busy={job.isPending} busyLabel={t("incoming.exporting")} onClick={() => job.mutate()}>
      <Download aria-hidden="true" />
      {t("incoming.exportCsv")}
    </Button>
  );
}
