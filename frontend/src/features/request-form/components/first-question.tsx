import { useCallback, useEffect, useLayoutEffect, useState, type ComponentType } from "react";
import { useLocation, useNavigate, useSearchParams } from "react-router-dom";
import { LoadingState, LoadingView } from "@/components/loading-view";
import { FailedState } from "@/components/states";
import { paths } from "@/app/paths";
import { loadHelpKinds, type HelpKind } from "@/lib/help-kinds";
import { fetchFonts, showFonts } from "@/lib/fonts";
import { useSession } from "@/lib/session";
import { getSupabase } from "@/lib/supabase";
import { t } from "@/messages";
import { firstWords } from "@/messages/locale";
import "@/messages/en/requestForm";
import { isBlank, type Chosen } from "../answers";
import { begunWith, startHere } from "../start";
import { keep, readKept } from "../storage";
import { CategoryStep, CategoryTail } from "./category-step";
import { Frame, showFromTop } from "./frame";
import type { WholeFormProps } from "./whole-form";

/** The form's query parameters. */
const wishes = ["step", "draft", "form"];

/** A guest's new request. */
const GUEST = { userId: null, draftId: null };

/** Whether there are no kept answers. */
function nothingKept(): boolean {
  const kept = readKept(GUEST);
  return kept === null || (kept.sent === null && isBlank(kept.answers));
}

const none = { data: undefined, error: null };

/** The kinds of help, without the query cache, which loads with the rest of the form. */
function useHelpKinds() {
  const [answer, setAnswer] = useState<{ data: HelpKind[] | undefined; error: unknown }>(none);
  const load = useCallback(() => {
    loadHelpKinds().then(
      (data) => setAnswer({ data, error: null }),
      (error: unknown) => setAnswer({ data: undefined, error }),
    );
  }, []);
  useEffect(load, [load]);
  const refetch = () => {
    setAnswer(none);
    load();
  };
  const isError = answer.error !== null;
  return {
    ...answer,
    error: answer.error as Error,
    isError,
    isPending: !isError && answer.data === undefined,
    refetch,
  };
}

/** The rest of the form, once it is wanted. */
function useWholeForm(wanted: boolean) {
  const [Whole, setWhole] = useState<ComponentType<WholeFormProps> | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = useCallback(() => {
    firstWords()
      .then(() => import("./whole-form"))
      .then((module) => setWhole(() => module.WholeForm), setError);
  }, []);
  useEffect(() => {
    if (wanted) load();
  }, [wanted, load]);
  const again = () => {
    setError(null);
    load();
  };
  return { Whole, error, again };
}

/**
 * The request form at /submit-request and /request-submission. New visitors get the first question from this file alone
 * (`npm run size` limits its size); the form with its schemas, supabase-js and Radix loads while they read it.
 */
export function RequestFormPage() {
  const { status, selectedNonprofit } = useSession();
  const [params] = useSearchParams();
  const elsewhere = wishes.some((wish) => params.has(wish));
  const [anew] = useState(() => status === "signed-out" && !elsewhere && nothingKept());
  const [begun, setBegun] = useState<Chosen>();
  const [asked, setAsked] = useState(false);
  const { Whole, error, again } = useWholeForm(!anew || asked || elsewhere);
  const first = anew && !elsewhere && begun === undefined;
  // kept before the rest has loaded, because on a bad line that takes long enough to reload the page
  const choose = (category: Chosen) => {
    keep(GUEST, begunWith(startHere(null, "wizard"), category, selectedNonprofit));
    setBegun(category);
  };
  const whole = Whole !== null;
  // as between two steps (`Frame`): when the next one stands, and again when its whole form does
  useLayoutEffect(() => {
    if (begun === undefined || (!whole && error !== null)) return;
    showFromTop();
  }, [begun, whole, error]);

  if (first) return <FirstQuestion onChoose={choose} onAsked={setAsked} />;
  if (Whole) return <Whole begun={begun} />;
  if (begun === undefined && error === null) return <LoadingView />;
  return (
    <Frame
      step="nonprofits"
      title={t("requestForm.nonprofitsTitle")}
      saving={{ state: "idle" }}
      expired={false}
      hrefOf={hrefOf}
    >
      {error === null ? <LoadingState /> : <FailedState error={error} onRetry={again} />}
    </Frame>
  );
}

/** Nothing to go back to that would be another page. */
const hrefOf = () => paths.requestSubmission;

function FirstQuestion({
  onChoose,
  onAsked,
}: {
  onChoose: (category: Chosen) => void;
  onAsked: (asked: true) => void;
}) {
  const kinds = useHelpKinds();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const [params] = useSearchParams();
  const settled = !kinds.isPending;
  useEffect(() => {
    if (!settled) return;
    // the question is visible, so further downloads do not delay it
    const rest = setTimeout(() => {
      fetchFonts();
      onAsked(true);
      void getSupabase().catch(() => undefined);
    });
    return () => clearTimeout(rest);
  }, [settled, onAsked]);
  useEffect(() => showFonts, []);
  return (
    <Frame
      step="category"
      title={t("requestForm.categoryTitle")}
      lead={t("requestForm.categoryLead")}
      saving={{ state: "idle" }}
      expired={false}
      hrefOf={hrefOf}
    >
      <CategoryStep
        kinds={kinds}
        chosenId={null}
        onChoose={({ id, name }) => {
          onChoose({ id, name });
          const next = new URLSearchParams(params);
          next.set("step", "nonprofits");
          void navigate(`${pathname}?${next}`);
        }}
      />
      <CategoryTail />
    </Frame>
  );
}
