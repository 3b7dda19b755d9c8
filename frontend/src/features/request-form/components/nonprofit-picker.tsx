import { useInfiniteQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { useDeferredValue, useId, useState, type ReactNode } from "react";
import { SearchField } from "@/components/search-field";
import { EmptyState, FailedState } from "@/components/states";
import { TickCard } from "@/components/tick-card";
import { Button } from "@/components/ui/button";
import { Select } from "@/components/ui/select";
import { Skeleton } from "@/components/ui/skeleton";
import { localName } from "@/lib/local-name";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import { toggleNonprofit, type Chosen } from "../answers";
import { directoryQuery, type Nonprofit } from "../api";

/** The fields of work a nonprofit may name (section 3). */
export const fieldsOfWork = [
  "Healthcare",
  "Education",
  "Environment",
  "Food & Nutrition",
  "Housing",
  "Technology",
  "Emergency Relief",
] as const;

/** 'Portland, ME · usually answers in 3 days'. */
function nonprofitMeta(nonprofit: Pick<Nonprofit, "location" | "average_response_time_days">): string {
  const days = nonprofit.average_response_time_days;
  return [nonprofit.location, days === null ? null : t("requestForm.answersIn", { count: days })]
    .filter(Boolean)
    .join(" · ");
}

/** A card's text below a nonprofit's name; `category` is the requested kind of help. */
export function NonprofitWords({ nonprofit, category }: { nonprofit: Nonprofit; category?: string }) {
  const fits = [
    nonprofit.helps && category ? t("requestForm.helpsWith", { category: localName(category) }) : null,
    nonprofit.near ? t("requestForm.helpsThere") : null,
  ].filter((words) => words !== null);
  return (
    <>
      <span className="line-clamp-2">{nonprofit.mission}</span>
      <span className="pick-meta">{nonprofitMeta(nonprofit)}</span>
      {fits.map((words) => (
        <span key={words} className="pick-fit">
          <Check aria-hidden="true" />
          {words}
        </span>
      ))}
    </>
  );
}

export interface DirectoryProps {
  /** The requested kind of help: nonprofits that offer it come first. */
  need?: string | null;
  /** Where the person is, as far as it is known. */
  place?: string;
  /** Filtering by field of work, beside the search. */
  withFields?: boolean;
  children: (nonprofits: readonly Nonprofit[]) => ReactNode;
}

/** Search over the directory of nonprofits, with its loading, empty and failed states. */
export function Directory({ need = null, place: known = "", withFields, children }: DirectoryProps) {
  const [place, setPlace] = useState(known);
  const id = useId();
  const [search, setSearch] = useState("");
  const [category, setCategory] = useState("");
  const query = useInfiniteQuery(directoryQuery({ search, category, need, place }));
  const pages = useDeferredValue(query.data?.pages);
  const rows = pages?.flatMap((page) => page.rows) ?? [];
  const filtered = search !== "" || category !== "";
  return (
    <>
      <div className="field mb-4">
        <label className="label" htmlFor={`${id}place`}>
          {t("requestForm.place")}
        </label>
        <p className="hint" id={`${id}hint`}>
          {t("requestForm.placeHint")}
        </p>
        <SearchField
          id={`${id}place`}
          aria-describedby={`${id}hint`}
          placeholder={t("requestForm.placeExample")}
          value={place}
          autoComplete="address-level2"
          onSearch={setPlace}
        />
      </div>
      <div className={withFields ? "filters search mb-4" : "mb-4"}>
        <div className="field">
          <label className="label" htmlFor={`${id}search`}>
            {t("requestForm.nonprofitSearch")}
          </label>
          <SearchField
            id={`${id}search`}
            placeholder={t("requestForm.nonprofitSearchHint")}
            value={search}
            autoComplete="off"
            onSearch={setSearch}
          />
        </div>
        {withFields ? (
          <div className="field">
            <label className="label" htmlFor={`${id}category`}>
              {t("requestForm.nonprofitCategory")}
            </label>
            <Select
              id={`${id}category`}
              value={category || "all"}
              onChange={(value) => setCategory(value === "all" ? "" : value)}
              options={[
                { value: "all", label: t("requestForm.allFields") },
                ...fieldsOfWork.map((field) => ({ value: field, label: localName(field) })),
              ]}
            />
          </div>
        ) : null}
      </div>
      {query.isPending || (query.isSuccess && !pages) ? (
        <div className="choices" role="status" aria-busy="true" aria-label={t("requestForm.nonprofitsLoading")}>
          {[0, 1, 2].map((row) => (
            <div key={row} className="choice tick-card pointer-events-none">
              <Skeleton className="size-6!" />
              <span className="grid gap-2">
                <Skeleton className="h-5! w-2/5" />
                <Skeleton className="w-4/5" />
              </span>
            </div>
          ))}
        </div>
      ) : query.isError && rows.length === 0 ? (
        <FailedState
          error={query.error}
          title={t("requestForm.nonprofitsFailed")}
          onRetry={() => void query.refetch()}
        />
      ) : rows.length === 0 ? (
        <EmptyState
          title={t("requestForm.noNonprofits")}
          actions={
            filtered ? (
              <Button
                onClick={() => {
                  setSearch("");
                  setCategory("");
                }}
              >
                {t("requestForm.clearSearch")}
              </Button>
            ) : null
          }
        >
          {t(filtered ? "requestForm.noNonprofitsBody" : "requestForm.noNonprofitsYet")}
        </EmptyState>
      ) : (
        <>
          {children(rows)}
          {query.hasNextPage ? (
            <Button className="mt-4" full busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
              {t("requestForm.moreNonprofits")}
            </Button>
          ) : null}
        </>
      )}
    </>
  );
}

export interface NonprofitPickerProps {
  /** The kind of help that is asked for. */
  need: Chosen | null;
  /** Where the person is, as far as it is known. */
  place: string;
  chosen: readonly Chosen[];
  onChange: (chosen: readonly Chosen[]) => void;
  /** Which of the spec's two toasts a fourth choice gets. */
  toastOn: "wizard" | "single";
}

/** Tick up to three; a fourth says so. */
export function NonprofitPicker({ need, place, chosen, onChange, toastOn }: NonprofitPickerProps) {
  const toggle = (nonprofit: Chosen) => {
    const { nonprofits, full } = toggleNonprofit(chosen, nonprofit);
    if (!full) return onChange(nonprofits);
    toast({
      variant: "destructive",
      title: t(toastOn === "wizard" ? "requestForm.maximumTitle" : "requestForm.maximumFormTitle"),
      description: t(toastOn === "wizard" ? "requestForm.maximumBody" : "requestForm.maximumFormBody"),
    });
  };
  return (
    <Directory need={need?.id ?? null} place={place}>
      {(nonprofits) => (
        <fieldset className="choices m-0 border-0 p-0">
          <legend className="visually-hidden">{t("requestForm.nonprofitsLegend")}</legend>
          {nonprofits.map((nonprofit) => (
            <TickCard
              key={nonprofit.id}
              checked={chosen.some(({ id }) => id === nonprofit.id)}
              onCheckedChange={() => toggle(nonprofit)}
              title={nonprofit.name}
              description={<NonprofitWords nonprofit={nonprofit} category={need?.name} />}
            />
          ))}
        </fieldset>
      )}
    </Directory>
  );
}
