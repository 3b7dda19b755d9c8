import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { Label } from "@/components/ui/label";
import { Select } from "@/components/ui/select";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import { categoryNamesQuery } from "../api";
import { statusFilters, type RequestFilters, type StatusFilter } from "../filters";

export interface FilterFieldsProps {
  filters: Pick<RequestFilters, "status" | "category">;
  onChange: (patch: Partial<Pick<RequestFilters, "status" | "category">>) => void;
}

/** Status and category: the two filters that dashboard and list share. */
export function StatusAndCategory({ filters, onChange }: FilterFieldsProps) {
  const id = useId();
  const categories = useQuery(categoryNamesQuery);
  const names = categories.data ?? [];
  const known = filters.category && !names.includes(filters.category) ? [...names, filters.category] : names;
  return (
    <>
      <div className="field">
        <Label htmlFor={`${id}-status`}>{t("myRequests.status")}</Label>
        <Select
          id={`${id}-status`}
          value={filters.status}
          onChange={(status) => onChange({ status: status as StatusFilter })}
          options={statusFilters.map((status) => ({
            value: status,
            label: status === "all" ? t("myRequests.allStatuses") : t(`common.status.${status}`),
          }))}
        />
      </div>
      <div className="field">
        <Label htmlFor={`${id}-category`}>{t("myRequests.category")}</Label>
        <Select
          id={`${id}-category`}
          value={filters.category || "all"}
          onChange={(category) => onChange({ category: category === "all" ? "" : category })}
          options={[
            { value: "all", label: t("myRequests.allCategories") },
            ...known.map((name) => ({ value: name, label: localName(name) })),
          ]}
        />
      </div>
    </>
  );
}
