import { useEffect } from "react";
import { Link, Navigate, useNavigate, useSearchParams } from "react-router-dom";
import { SentArt } from "@/components/art/sent";
import { PublicPage } from "@/components/pages";
import { LoadingView } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { Words } from "@/components/words";
import { useLogin } from "@/features/auth/api";
import { LoginForm } from "@/features/auth/login-form";
import { ProviderButtons } from "@/features/auth/provider-buttons";
import { useSession } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/auth";
import { paths, safeNext, withNext } from "../../paths";
import "./gate.css";

export function Component() {
  const { status, forgetEnd } = useSession();
  const [search] = useSearchParams();
  const navigate = useNavigate();
  const login = useLogin();
  const next = safeNext(search.get("next"));
  const target = next ?? paths.dashboard;

  useEffect(forgetEnd, [forgetEnd]);

  // The form stays during a login attempt, so that nothing typed is lost.
  if (login.isIdle) {
    if (status === "loading") return <LoadingView />;
    if (status === "signed-in") return <Navigate to={target} replace />;
  }

  const failed = search.has("error") || search.has("error_description");
  return (
    <PublicPage title={t("auth.loginTitle")} className="wrap gate">
      <section className="gate-form">
        <h1>{t("auth.welcomeBack")}</h1>
        <p className="soft mt-2">{t("auth.loginLead")}</p>
        <div className="mt-6 grid gap-6">
          {failed ? (
            <Notice tone="bad" role="alert" title={t("auth.alertTitle")}>
              {search.get("error_code") === "otp_expired"
                ? t("auth.linkOver")
                : search.get("error_description") || t("auth.alertFallback")}
            </Notice>
          ) : null}
          <ProviderButtons labels={{ google: t("auth.google"), azure: t("auth.microsoft") }} landing={() => target} />
          <p className="or">{t("auth.or")}</p>
          <LoginForm
            login={login}
            landing={target}
            forgotLink={<Link to={withNext(paths.forgotPassword, next)}>{t("auth.forgotLink")}</Link>}
            onDone={() => void navigate(target, { replace: true })}
          />
          <p className="soft">
            <Words
              k="auth.newHere"
              parts={{ link: <Link to={withNext(paths.signup, next)}>{t("auth.createAccount")}</Link> }}
            />
          </p>
        </div>
      </section>
      <aside className="gate-aside">
        <SentArt />
        <h2>{t("auth.asideTitle")}</h2>
        <p>{t("auth.asideBody")}</p>
        <Button asChild>
          <Link to={paths.requestSubmission}>{t("auth.asideLink")}</Link>
        </Button>
      </aside>
    </PublicPage>
  );
}
