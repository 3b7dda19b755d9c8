import { useEffect, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router-dom";
import { HandsArt } from "@/components/art/hands";
import { LetterArt } from "@/components/art/letter";
import { ArrowLeft } from "lucide-react";
import { ChoiceCard } from "@/components/choice-card";
import { FormPage } from "@/components/pages";
import { Words } from "@/components/words";
import type { SignupRole } from "@/features/auth/api";
import { CheckEmail } from "@/features/auth/check-email";
import { SignupForm } from "@/features/auth/signup-form";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import "@/messages/en/errors";
import { paths, safeNext, withNext } from "../../paths";
import { TermsWords } from "../../terms-words";

const isRole = (value: string | null): value is SignupRole => value === "requester" || value === "nonprofit";

/** Step 1: the role. It lives in the address (`?role=`), so that Back and reload work. */
function RoleStep({ next, onRole }: { next: string | null; onRole: (role: SignupRole) => void }) {
  return (
    <FormPage title={t("auth.signupTitle")} heading={t("auth.signupHeading")} lead={t("auth.signupLead")}>
      <div className="choices">
        <ChoiceCard
          art={<LetterArt />}
          title={t("auth.roleRequester")}
          description={t("auth.roleRequesterBody")}
          onClick={() => onRole("requester")}
        />
        <ChoiceCard
          art={<HandsArt />}
          title={t("auth.roleNonprofit")}
          description={t("auth.roleNonprofitBody")}
          onClick={() => onRole("nonprofit")}
        />
      </div>
      <p className="soft mt-8">
        <Words k="auth.haveAccount" parts={{ link: <Link to={withNext(paths.login, next)}>{t("auth.login")}</Link> }} />
      </p>
      <p className="soft mt-2">
        <Words k="auth.onlyAsk" parts={{ link: <Link to={paths.requestSubmission}>{t("auth.onlyAskLink")}</Link> }} />
      </p>
    </FormPage>
  );
}

export function Component() {
  const [search, setSearch] = useSearchParams();
  const navigate = useNavigate();
  const [waitingFor, setWaitingFor] = useState<string | null>(null);
  const asked = search.get("role");
  const role = isRole(asked) ? asked : null;
  const unknownRole = asked !== null && role === null;
  const next = safeNext(search.get("next"));

  useEffect(() => {
    if (unknownRole) toast({ variant: "destructive", title: t("errors.title"), description: t("auth.roleMissing") });
  }, [unknownRole]);

  const choose = (chosen: SignupRole | null) =>
    setSearch((before) => {
      if (chosen) before.set("role", chosen);
      else before.delete("role");
      return before;
    });

  if (!role) return <RoleStep next={next} onRole={choose} />;

  const landing = next ?? (role === "nonprofit" ? paths.nonprofitOnboarding : paths.dashboard);
  const title = t(role === "nonprofit" ? "auth.signUpAsNonprofit" : "auth.signUpAsRequester");
  if (waitingFor) {
    return (
      <FormPage title={t("auth.checkEmailTitle")} heading="" className="check-email">
        <CheckEmail email={waitingFor} landing={landing} onOther={() => setWaitingFor(null)} />
      </FormPage>
    );
  }
  return (
    <FormPage
      title={title}
      back={
        <button type="button" className="back cursor-pointer" onClick={() => choose(null)}>
          <ArrowLeft aria-hidden="true" />
          {t("common.back")}
        </button>
      }
    >
      <SignupForm
        accountRole={role}
        landing={landing}
        doneBody={t(role === "nonprofit" ? "auth.signupDoneNonprofit" : "auth.signupDoneRequester")}
        terms={<TermsWords />}
        onDone={({ signedIn, email }) => {
          if (signedIn) void navigate(landing, { replace: true });
          else setWaitingFor(email);
        }}
      />
      <p className="soft mt-6">
        <Words k="auth.haveAccount" parts={{ link: <Link to={withNext(paths.login, next)}>{t("auth.login")}</Link> }} />
      </p>
    </FormPage>
  );
}
