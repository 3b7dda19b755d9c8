import { DayPicker, type DayPickerProps } from "react-day-picker";
import { formatMonth, formatWeekday, formatWholeDate } from "@/lib/format";
import { t } from "@/messages";
import { currentLocale } from "@/messages/locale";

/** By our own formats: the locales of react-day-picker are bytes to load, and have no Haitian Creole. */
const formatters: DayPickerProps["formatters"] = {
  formatCaption: formatMonth,
  // as short as in other calendars, and different for each day in all four languages
  formatWeekdayName: (day) => [...formatWeekday(day)].slice(0, 2).join(""),
};

const labels: DayPickerProps["labels"] = {
  labelGrid: formatMonth,
  labelWeekday: formatWeekday,
  labelPrevious: () => t("common.previousMonth"),
  labelNext: () => t("common.nextMonth"),
  labelDayButton: (date, { today, selected }) => {
    const day = formatWholeDate(date);
    const named = today ? t("common.dayToday", { day }) : day;
    return selected ? t("common.daySelected", { day: named }) : named;
  },
};

/** react-day-picker in our clothes (`.cal` in styles/motion.css) and the reader's language. */
export function Calendar(props: DayPickerProps) {
  const locale = currentLocale();
  return (
    <DayPicker
      lang={locale}
      // Haiti's weeks begin on Monday, like those of French speakers; those of the United States on Sunday
      weekStartsOn={locale === "fr" || locale === "ht" ? 1 : 0}
      formatters={formatters}
      labels={labels}
      showOutsideDays={false}
      classNames={{
        root: "cal",
        months: "cal-months",
        nav: "cal-nav",
        month_caption: "cal-caption",
        month_grid: "cal-grid",
        day: "cal-day",
        today: "cal-today",
        outside: "cal-outside",
        disabled: "cal-disabled",
        selected: "cal-in",
        range_start: "cal-end",
        range_end: "cal-end",
        chevron: "cal-chevron",
      }}
      {...props}
    />
  );
}
