import { useInfiniteQuery } from "@tanstack/react-query";
import { useDeferredValue, useState, type ReactNode } from "react";
import { SearchField } from "@/components/search-field";
import { EmptyState, FailedState } from "@/components/states";
import { TickCard } from "@/components/choice-card";
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
export function nonprofitMeta(nonprofit: Pick<Nonprofit, "location" | "average_response_time_days">): string {
  const days = nonprofit.average_response_time_days;
  return [nonprofit.location, days === null ? null : t("requestForm.answersIn", { count: days })]
    .filter(Boolean)
    .join(" · ");
}

export interface DirectoryProps {
  /** Filtering by field of work, beside the search. */
  withFields?: boolean;
  children: (nonprofits: readonly Nonprofit[]) => ReactNode;
}

/** Search over the directory of nonprofits, with its loading, empty and failed states. */
export function Directory({ withFields, children }: DirectoryProps) {
  const [search, setSearch] = useState("");
  const [category, setCategory] = useState("");
  const query = useInfiniteQuery(directoryQuery({ search, category }));
  const pages = useDeferredValue(query.data?.pages);
  const rows = pages?.flatMap((page) => page.rows) ?? [];
  const filtered = search !== "" || category !== "";
  return (
    <>
      <div className={withFields ? "filters search mb-4" : "mb-4"}>
        <SearchField
          aria-label={t("requestForm.nonprofitSearch")}
          placeholder={t("requestForm.nonprofitSearchHint")}
          value={search}
          autoComplete="off"
          onSearch={setSearch}
        />
        {withFields ? (
          <Select
            aria-label={t("requestForm.nonprofitCategory")}
            value={category || "all"}
            onChange={(value) => setCategory(value === "all" ? "" : value)}
            options={[
              { value: "all", label: t("requestForm.allFields") },
              ...fieldsOfWork.map((field) => ({ value: field, label: localName(field) })),
            ]}
          />
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
  chosen: readonly Chosen[];
  onChange: (chosen: readonly Chosen[]) => void;
  /** Which of the spec's two toasts a fourth choice gets. */
  toastOn: "wizard" | "single";
}

/** Tick up to three; a fourth says so. */
export function NonprofitPicker({ chosen, onChange, toastOn }: NonprofitPickerProps) {
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
    <Directory>
      {(nonprofits) => (
        <fieldset className="choices m-0 border-0 p-0">
          <legend className="visually-hidden">{t("requestForm.nonprofitsLegend")}</legend>
          {nonprofits.map((nonprofit) => (
            <TickCard
              key={nonprofit.id}
              checked={chosen.some(({ id }) => id === nonprofit.id)}
              onCheckedChange={() => toggle(nonprofit)}
              title={nonprofit.name}
              description={
                <>
                  <span className="line-clamp-2">{nonprofit.mission}</span>
                  <span className="pick-meta">{nonprofitMeta(nonprofit)}</span>
                </>
              }
            />
          ))}
        </fieldset>
      )}
    </Directory>
  );
}
