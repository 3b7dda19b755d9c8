import type { ComponentType } from "react";
import { Link, useLocation, useSearchParams } from "react-router-dom";
import { BasketArt } from "@/components/art/basket";
import { CareArt } from "@/components/art/care";
import { HandsArt } from "@/components/art/hands";
import { HouseArt } from "@/components/art/house";
import type { PictureProps } from "@/components/art/picture";
import { SchoolArt } from "@/components/art/school";
import { ShopArt } from "@/components/art/shop";
import { ChoiceCard } from "@/components/choice-card";
import { QueryView, type QueryViewProps } from "@/components/query-view";
import { EmptyState } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Skeleton } from "@/components/ui/skeleton";
import { localName } from "@/lib/local-name";
import type { HelpKind } from "@/lib/help-kinds";
import { t } from "@/messages";
import "@/messages/en/requestForm";

const pictures: readonly [RegExp, ComponentType<PictureProps>][] = [
  [/food|meal|grocer/i, BasketArt],
  [/rent|hous|home|shelter/i, HouseArt],
  [/medic|health|care/i, CareArt],
  [/school|educat|tuition|book/i, SchoolArt],
  [/business|shop|grant|work/i, ShopArt],
];

/** The spot illustration that fits a category's name. */
export function CategoryArt({ name }: { name: string }) {
  const Art = pictures.find(([words]) => words.test(name))?.[1] ?? HandsArt;
  return <Art />;
}

export function CategoriesSkeleton() {
  return (
    <div className="choices" role="status" aria-busy="true" aria-label={t("requestForm.categoriesLoading")}>
      {[0, 1, 2, 3, 4].map((row) => (
        <div key={row} className="choice pointer-events-none">
          <Skeleton className="size-12!" />
          <span className="grid gap-2">
            <Skeleton className="h-5! w-2/5" />
            <Skeleton className="w-3/5" />
          </span>
          <span />
        </div>
      ))}
    </div>
  );
}

export function NoCategories() {
  return (
    <EmptyState
      title={t("requestForm.noCategories")}
      actions={
        <Button variant="primary" onClick={() => window.location.reload()}>
          {t("common.refresh")}
        </Button>
      }
    >
      {t("requestForm.noCategoriesBody")}
    </EmptyState>
  );
}

/** Step 1: a card moves on at once. */
export function CategoryStep({
  kinds,
  chosenId,
  onChoose,
}: {
  kinds: QueryViewProps<HelpKind[]>["query"];
  chosenId: string | null;
  onChoose: (category: HelpKind) => void;
}) {
  return (
    <QueryView
      query={kinds}
      loading={<CategoriesSkeleton />}
      failedTitle={t("requestForm.categoriesFailed")}
      empty={<NoCategories />}
    >
      {(list) => (
        <ul className="choices list-none p-0" aria-label={t("requestForm.categoryTitle")}>
          {list.map((category) => (
            <li key={category.id}>
              <ChoiceCard
                art={<CategoryArt name={category.name} />}
                title={localName(category.name)}
                description={category.description && localName(category.description)}
                className={category.id === chosenId ? "on" : undefined}
                aria-pressed={category.id === chosenId ? true : undefined}
                onClick={() => onChoose(category)}
              />
            </li>
          ))}
        </ul>
      )}
    </QueryView>
  );
}

/** The other form at the same address; the answers come along. */
export function formParams(params: URLSearchParams, form: "single" | "wizard"): URLSearchParams {
  const next = new URLSearchParams(params);
  next.set("form", form);
  next.delete("step");
  return next;
}

/** Below the kinds of help. */
export function CategoryTail() {
  const { pathname } = useLocation();
  const [params] = useSearchParams();
  return (
    <div className="wiz-tail">
      <p>{t("requestForm.categoryHelp")}</p>
      <p className="mt-3">
        <Link to={`${pathname}?${formParams(params, "single")}`}>{t("requestForm.onePage")}</Link>{" "}
        {t("requestForm.onePageBody")}
      </p>
    </div>
  );
}
