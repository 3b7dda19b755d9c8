import { DayPicker, type DayPickerProps } from "react-day-picker";

/** react-day-picker in our clothes (`.cal` in styles/motion.css). */
export function Calendar(props: DayPickerProps) {
  return (
    <DayPicker
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
