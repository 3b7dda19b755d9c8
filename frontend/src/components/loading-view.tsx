import { t } from "@/messages";
import { LoadingArt } from "./art/loading";
import { State } from "./state";

/** The full-screen loading view, in place of a page: the half-built bridge and the spec's words. */
export function LoadingView() {
  return (
    <main id="main" tabIndex={-1} className="lone outline-none">
      <LoadingState heading="h1" />
    </main>
  );
}

/** The same inside a page. */
export function LoadingState({ heading }: { heading?: "h1" | "h2" }) {
  return <State art={LoadingArt} role="status" heading={heading} title={t("common.loading")} />;
}
