import { useNavigate, useSearchParams } from "react-router-dom";
import { GlobeArt } from "@/components/art/globe";
import { HandsArt } from "@/components/art/hands";
import { LetterArt } from "@/components/art/letter";
import { ChoiceCard } from "@/components/choice-card";
import { FormPage } from "@/components/pages";
import { useChooseRole } from "@/features/account/api";
import { errorMessage } from "@/lib/errors";
import { useSession, type AccountRole } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { paths, safeNext, withNext } from "../../paths";

const targets: Record<AccountRole, string> = {
  requester: paths.selectNonprofit,
  nonprofit: paths.nonprofitRoleSelection,
  donor: paths.donorDashboard,
};

export function Component() {
  const { user } = useSession();
  const navigate = useNavigate();
  const [search] = useSearchParams();
  const next = safeNext(search.get("next"));
  const choose = useChooseRole();

  const pick = (role: AccountRole) => {
    if (!user) {
      toast({ variant: "destructive", title: t("account.userNotFound"), description: t("account.userNotFoundBody") });
      return;
    }
    choose.mutate(
      { userId: user.id, role },
      {
        onSuccess: () => void navigate(withNext(targets[role], next)),
        onError: (error) =>
          toast({ variant: "destructive", title: t("account.roleFailed"), description: errorMessage(error) }),
      },
    );
  };

  return (
    <FormPage title={t("account.roleTitle")} lead={t("account.roleLead")}>
      <div className="choices" aria-busy={choose.isPending}>
        <ChoiceCard
          art={<LetterArt />}
          title={t("account.roleRequester")}
          description={t("account.roleRequesterBody")}
          disabled={choose.isPending}
          onClick={() => pick("requester")}
        />
        <ChoiceCard
          art={<GlobeArt />}
          title={t("account.roleDonor")}
          description={t("account.roleDonorBody")}
          disabled={choose.isPending}
          onClick={() => pick("donor")}
        />
        <ChoiceCard
          art={<HandsArt />}
          title={t("account.roleNonprofit")}
          description={t("account.roleNonprofitBody")}
          disabled={choose.isPending}
          onClick={() => pick("nonprofit")}
        />
      </div>
    </FormPage>
  );
}
