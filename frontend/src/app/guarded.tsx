import { useEffect } from "react";
import { Link, Outlet, useLocation, useNavigate } from "react-router-dom";
import { FailedState, LoadingView, RefusedState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { useSession } from "@/lib/session";
import { toast, TOAST_DURATION_MS } from "@/lib/toast";
import { t } from "@/messages";
import { decide, type Access } from "./guard";
import { loginAfterFailure, paths } from "./paths";

/** When an unusable account was last signed out, in ms of `performance.now()`. */
let signedOutAt = Number.NEGATIVE_INFINITY;

/** Lets the page through, or shows why not. */
export function Guarded({ access }: { access: Access }) {
  const session = useSession();
  const navigate = useNavigate();
  const location = useLocation();
  const verdict = decide(session, access, location.pathname + location.search);
  const to = "to" in verdict ? verdict.to : null;

  useEffect(() => {
    if (verdict.kind !== "redirect" && verdict.kind !== "sign-out") return;
    const failed = verdict.to.startsWith(paths.login) ? loginAfterFailure(location) : null;
    if (failed !== null) return void navigate(failed, { replace: true });
    // After signing out, the page would ask for a login, but the person has just seen the real reason.
    const isTold = performance.now() - signedOutAt < TOAST_DURATION_MS;
    if (verdict.kind === "sign-out") signedOutAt = performance.now();
    if (verdict.toast && !isTold) toast({ variant: "destructive", ...verdict.toast });
    if (verdict.kind === "sign-out") void session.signOut().catch(() => undefined);
    void navigate(verdict.to, { replace: true });
    // the verdict is new on every render; what it asks for is in its kind and address
    // oxlint-disable-next-line react/exhaustive-deps
  }, [verdict.kind, to, navigate]);

  switch (verdict.kind) {
    case "allow":
      return <Outlet />;
    case "failed":
      return (
        <main id="main" className="work">
          <FailedState heading="h1" error={session.error} onRetry={() => void session.refresh()} />
        </main>
      );
    case "no-membership":
      return (
        <main id="main" className="work">
          <RefusedState
            heading="h1"
            title={t("shell.noMembership")}
            actions={
              <Button asChild variant="primary">
                <Link to={paths.nonprofitDashboard}>{t("shell.toDashboard")}</Link>
              </Button>
            }
          >
            <p>{t("shell.noMembershipBody")}</p>
          </RefusedState>
        </main>
      );
    case "wait":
    case "redirect":
    case "sign-out":
      return <LoadingView />;
  }
}
