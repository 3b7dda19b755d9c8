import { Check } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router-dom";
import { SentArt } from "@/components/art/sent";
import { FormPage, PublicPage } from "@/components/pages";
import { LoadingState } from "@/components/loading-view";
import { FailedState } from "@/components/states";
import { Words } from "@/components/words";
import { useBecomeNonprofit, type Provider } from "@/features/auth/api";
import { CheckEmail } from "@/features/auth/check-email";
import { ProviderButtons } from "@/features/auth/provider-buttons";
import { SignupForm } from "@/features/auth/signup-form";
import { useSession } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import { paths } from "../../paths";
import { TermsWords } from "../../terms-words";
import "./gate.css";

/** After Google or Microsoft: the new account becomes a nonprofit's owner and continues to onboarding. */
function FinishProviderSignup({ provider }: { provider: Provider }) {
  const { user, status, refresh } = useSession();
  const navigate = useNavigate();
  const { mutateAsync, error, reset } = useBecomeNonprofit();
  const started = useRef(false);
  const [failure, setFailure] = useState<unknown>(null);

  const finish = async (userId: string) => {
    started.current = true;
    try {
      await mutateAsync(userId);
      await refresh();
      toast({
        title: t(provider === "google" ? "auth.googleSignedUp" : "auth.microsoftSignedUp"),
        description: t("auth.signupDoneOnboarding"),
      });
      await navigate(paths.nonprofitOnboarding, { replace: true });
    } catch (caught) {
      setFailure(caught);
    }
  };

  useEffect(() => {
    if (status === "signed-out") void navigate(paths.nonprofitSignup, { replace: true });
    if (status === "signed-in" && user && !started.current) void finish(user.id);
    // runs once, as soon as the session is known
    // oxlint-disable-next-line react/exhaustive-deps
  }, [status, user]);

  return (
    <PublicPage title={t("auth.finishingSignup")}>
      {failure || error ? (
        <FailedState
          heading="h1"
          error={failure ?? error}
          onRetry={() => {
            reset();
            setFailure(null);
            if (user) void finish(user.id);
          }}
        />
      ) : (
        <LoadingState heading="h1" />
      )}
    </PublicPage>
  );
}

export function Component() {
  const navigate = useNavigate();
  const [search] = useSearchParams();
  const [waitingFor, setWaitingFor] = useState<string | null>(null);
  const through = search.get("signed-up-with");
  if (through === "google" || through === "azure") return <FinishProviderSignup provider={through} />;
  if (waitingFor) {
    return (
      <FormPage title={t("auth.checkEmailTitle")} heading="">
        <CheckEmail email={waitingFor} landing={paths.nonprofitOnboarding} onOther={() => setWaitingFor(null)} />
      </FormPage>
    );
  }
  return (
    <PublicPage title={t("auth.nonprofitSignupTitle")} className="wrap gate">
      <section className="gate-form">
        <h1>{t("auth.nonprofitSignupHeading")}</h1>
        <p className="soft mt-2">{t("auth.nonprofitSignupLead")}</p>
        <div className="mt-6 grid gap-6">
          <ProviderButtons
            labels={{ google: t("auth.googleSignup"), azure: t("auth.microsoftSignup") }}
            landing={(provider) => `${paths.nonprofitSignup}?signed-up-with=${provider}`}
          />
          <p className="or">{t("auth.or")}</p>
          <SignupForm
            accountRole="nonprofit"
            landing={paths.nonprofitOnboarding}
            doneBody={t("auth.signupDoneOnboarding")}
            terms={<TermsWords />}
            onDone={({ signedIn, email }) => {
              if (signedIn) void navigate(paths.nonprofitOnboarding, { replace: true });
              else setWaitingFor(email);
            }}
          />
          <p className="soft">
            <Words k="auth.haveAccount" parts={{ link: <Link to={paths.login}>{t("auth.login")}</Link> }} />
          </p>
        </div>
      </section>
      <aside className="gate-aside">
        <SentArt />
        <h2>{t("auth.nonprofitAsideTitle")}</h2>
        <ul>
          {(["auth.nonprofitAside1", "auth.nonprofitAside2", "auth.nonprofitAside3"] as const).map((key) => (
            <li key={key}>
              <Check aria-hidden="true" />
              {t(key)}
            </li>
          ))}
        </ul>
      </aside>
    </PublicPage>
  );
}
