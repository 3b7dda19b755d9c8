import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useLocation, useNavigate, useSearchParams } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { GateArt } from "@/components/art/gate";
import { SentArt } from "@/components/art/sent";
import { PublicPage } from "@/components/pages";
import { FailedState, LoadingView, State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { invitationQuery, useAcceptInvitation, type Invitation } from "@/features/team-invitation/api";
import { errorMessage } from "@/lib/errors";
import { useSession, type NonprofitRole } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { useLogout } from "../../layouts/use-logout";
import { loginThen, paths } from "../../paths";

const roleWords = {
  admin: "account.teamAdmin",
  manager: "account.teamManager",
  employee: "account.teamEmployee",
  volunteer: "account.teamVolunteer",
} as const;
const roleWord = (role: NonprofitRole | undefined) => (role ? t(roleWords[role]) : "");

function Page({ children }: { children: ReactNode }) {
  return (
    <PublicPage title={t("account.invitationTitle")} className="lone">
      {children}
    </PublicPage>
  );
}

/** Ways out of an invalid link: the person's own pages, or home. */
function WaysOut() {
  const { user } = useSession();
  return (
    <>
      <Button asChild variant="primary">
        <Link to={user ? paths.dashboard : paths.login}>{t(user ? "account.toDashboard" : "account.toLogin")}</Link>
      </Button>
      <Button asChild>
        <Link to={paths.home}>{t("common.returnHome")}</Link>
      </Button>
    </>
  );
}

function OpenInvitation({ invitation, token }: { invitation: Invitation; token: string }) {
  const { user } = useSession();
  const { pathname, search } = useLocation();
  const navigate = useNavigate();
  const logout = useLogout();
  const accept = useAcceptInvitation();
  const here = pathname + search;

  if (user && invitation.for_you === false) {
    return (
      <State
        art={GateArt}
        heading="h1"
        title={t("account.invitationForeign")}
        actions={
          <Button variant="primary" onClick={() => void logout()}>
            {t("account.invitationLogout")}
          </Button>
        }
      >
        {t("account.invitationForeignBody", { email: invitation.email ?? "" })}
      </State>
    );
  }
  return (
    <>
      <State
        art={SentArt}
        heading="h1"
        title={t("account.invitationHeading", { organization: invitation.organization ?? "" })}
        actions={
          user ? (
            <Button
              variant="primary"
              busy={accept.isPending}
              busyLabel={t("account.invitationAccepting")}
              onClick={() =>
                accept.mutate(token, {
                  onSuccess: ({ name, role }) => {
                    toast({
                      title: t("account.invitationJoined", { name }),
                      description: t("account.invitationJoinedBody", { role: roleWord(role) }),
                    });
                    void navigate(paths.nonprofitDashboard, { replace: true });
                  },
                })
              }
            >
              {t("account.invitationAccept")}
            </Button>
          ) : (
            <>
              <Button asChild variant="primary">
                <Link to={loginThen(here)}>{t("account.invitationLogin")}</Link>
              </Button>
              <Button asChild>
                <Link to={`${paths.signup}?role=nonprofit&next=${encodeURIComponent(here)}`}>
                  {t("account.invitationSignup")}
                </Link>
              </Button>
            </>
          )
        }
      >
        <p>{t("account.invitationBody", { role: roleWord(invitation.role), email: invitation.email ?? "" })}</p>
        {user ? null : <p className="small">{t("account.invitationSignInHint")}</p>}
      </State>
      {accept.error ? (
        <div className="mx-auto max-w-lg px-4 pb-10">
          <Notice tone="bad" role="alert" title={t("account.invitationFailed")}>
            {errorMessage(accept.error)}
          </Notice>
        </div>
      ) : null}
    </>
  );
}

export function Component() {
  const [search] = useSearchParams();
  const token = search.get("token") ?? "";
  const { status, user } = useSession();
  const query = useQuery({ ...invitationQuery(token, user?.id ?? null), enabled: status !== "loading" });
  if (query.isPending) return <LoadingView />;
  if (!query.data) {
    return (
      <Page>
        <FailedState
          heading="h1"
          title={t("account.invitationNotLoaded")}
          error={query.error}
          onRetry={() => void query.refetch()}
        />
      </Page>
    );
  }
  const invitation = query.data;
  switch (invitation.state) {
    case "open":
      return (
        <Page>
          <OpenInvitation invitation={invitation} token={token} />
        </Page>
      );
    case "accepted":
      return (
        <Page>
          <State
            art={SentArt}
            heading="h1"
            title={t("account.invitationAcceptedTitle")}
            actions={
              <Button asChild variant="primary">
                <Link to={paths.dashboard}>{t("account.toDashboard")}</Link>
              </Button>
            }
          >
            {t("account.invitationAcceptedBody")}
          </State>
        </Page>
      );
    case "expired":
      return (
        <Page>
          <State art={GapArt} heading="h1" title={t("account.invitationExpired")} actions={<WaysOut />}>
            {t("account.invitationExpiredBody")}
          </State>
        </Page>
      );
    case "unknown":
      return (
        <Page>
          <State art={GapArt} heading="h1" title={t("account.invitationUnknown")} actions={<WaysOut />}>
            {t("account.invitationUnknownBody")}
          </State>
        </Page>
      );
  }
}
