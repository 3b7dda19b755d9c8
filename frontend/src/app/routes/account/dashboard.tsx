import { useEffect } from "react";
import { useNavigate } from "react-router-dom";
import { LoadingArt } from "@/components/art/loading";
import { PublicPage } from "@/components/pages";
import { State } from "@/components/states";
import { useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { dashboardTarget } from "../../dashboard-target";
import { paths } from "../../paths";

/** The role redirector. */
export function Component() {
  const navigate = useNavigate();
  const target = dashboardTarget(useUser());
  useEffect(() => {
    if (!target) {
      toast({ variant: "destructive", title: t("account.invalidRole"), description: t("account.invalidRoleBody") });
    }
    void navigate(target ?? paths.home, { replace: true });
  }, [target, navigate]);
  return (
    <PublicPage title={t("account.redirectTitle")} className="grid min-h-[60vh] place-items-center">
      <State art={LoadingArt} role="status" heading="h1" title={t("account.redirecting")} />
    </PublicPage>
  );
}
