import { useMutation } from "@tanstack/react-query";
import { useNavigate, useSearchParams } from "react-router-dom";
import { paths, safeNext } from "@/app/paths";
import { ChoiceCard } from "@/components/choice-card";
import { FormPage } from "@/components/pages";
import { errorMessage } from "@/lib/errors";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/picker";
import "@/messages/en/requestForm";
import "@/styles/requests.css";
import type { Chosen } from "../answers";
import { Directory, NonprofitWords } from "./nonprofit-picker";

/** /select-nonprofit: the requester's own nonprofit; a card moves on at once. */
export function SelectNonprofitScreen() {
  const { selectedNonprofit, selectNonprofit } = useSession();
  const navigate = useNavigate();
  const [params] = useSearchParams();
  const select = useMutation({
    mutationFn: (nonprofit: Chosen) => selectNonprofit(nonprofit),
    onSuccess: (_, { name }) => {
      toast({ title: t("picker.selected"), description: t("picker.selectedBody", { name }) });
      void navigate(safeNext(params.get("next")) ?? paths.requesterDashboard);
    },
    onError: (error) => toast({ variant: "destructive", title: t("picker.failed"), description: errorMessage(error) }),
  });
  return (
    <FormPage title={t("picker.title")} lead={t("picker.lead")} className="wiz">
      <p className="mb-4 text-soft" role="status">
        {selectedNonprofit ? t("picker.current", { name: selectedNonprofit.name }) : t("picker.none")}
      </p>
      <Directory withFields>
        {(nonprofits) => (
          <ul className="choices list-none p-0">
            {nonprofits.map((nonprofit) => (
              <li key={nonprofit.id}>
                <ChoiceCard
                  className={nonprofit.id === selectedNonprofit?.id ? "plain-card on" : "plain-card"}
                  title={nonprofit.name}
                  aria-current={nonprofit.id === selectedNonprofit?.id ? "true" : undefined}
                  aria-busy={select.isPending && select.variables.id === nonprofit.id}
                  description={<NonprofitWords nonprofit={nonprofit} />}
                  onClick={() => {
                    if (!select.isPending) select.mutate({ id: nonprofit.id, name: nonprofit.name });
                  }}
                />
              </li>
            ))}
          </ul>
        )}
      </Directory>
    </FormPage>
  );
}
