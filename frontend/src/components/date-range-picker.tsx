import { CalendarDays } from "lucide-react";
import { useState } from "react";
import { formatFilterDate } from "@/lib/format";
import { t } from "@/messages";
import { Button } from "./ui/button";
import { Calendar } from "./ui/calendar";
import { Popover, PopoverClose, PopoverContent, PopoverTrigger } from "./ui/popover";

/** Days as 'yyyy-mm-dd' (they live in the URL). */
export interface DateRange {
  from?: string;
  to?: string;
}

export interface DateRangePickerProps {
  id?: string;
  value: DateRange;
  onChange: (range: DateRange) => void;
  "aria-describedby"?: string;
}

const toDay = (date: Date | undefined): string | undefined =>
  date
    ? `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`
    : undefined;
const toDate = (day: string | undefined): Date | undefined => (day ? new Date(`${day}T00:00:00`) : undefined);

/** From–to over two months, side by side or (on phones) one above the other. Shows 'LLL dd, y'. */
export function DateRangePicker({ id, value, onChange, ...props }: DateRangePickerProps) {
  const [open, setOpen] = useState(false);
  const from = toDate(value.from);
  const to = toDate(value.to);
  const words = !from
    ? t("common.pickDateRange")
    : to
      ? t("common.dateRange", { from: formatFilterDate(from), to: formatFilterDate(to) })
      : formatFilterDate(from);
  return (
    <Popover open={open} onOpenChange={setOpen}>
      <PopoverTrigger asChild>
        <button type="button" id={id} className="input flex items-center gap-2 text-start" {...props}>
          <CalendarDays aria-hidden="true" className="text-faint" />
          <span className="num truncate">{words}</span>
        </button>
      </PopoverTrigger>
      <PopoverContent aria-label={t("common.pickDateRange")}>
        <Calendar
          mode="range"
          numberOfMonths={2}
          defaultMonth={from}
          selected={from ? { from, to } : undefined}
          onSelect={(range) => onChange({ from: toDay(range?.from), to: toDay(range?.to) })}
        />
        <div className="flex justify-end gap-2 p-2">
          <Button variant="quiet" onClick={() => onChange({})}>
            {t("common.clearDates")}
          </Button>
          <PopoverClose asChild>
            <Button>{t("common.close")}</Button>
          </PopoverClose>
        </div>
      </PopoverContent>
    </Popover>
  );
}
