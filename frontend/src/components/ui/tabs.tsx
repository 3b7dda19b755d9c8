import { Tabs as Radix } from "radix-ui";
import { useEffect, useRef, type ComponentProps, type ReactNode } from "react";
import { cn } from "@/lib/cn";
import { formatNumber } from "@/lib/format";

/** Tabs and panels follow the page's reading direction; Radix's default is left to right. */
export function Tabs(props: ComponentProps<typeof Radix.Root>) {
  const mirrored = typeof document !== "undefined" && document.documentElement.dir === "rtl";
  return <Radix.Root dir={mirrored ? "rtl" : "ltr"} {...props} />;
}

/** Notes at which ends the row is cut off, where the style fades the text. */
function markCutEnds(list: HTMLElement) {
  // where the page is read from the right, scrollLeft counts down from 0
  const scrolled = Math.abs(list.scrollLeft);
  list.toggleAttribute("data-more-before", scrolled > 1);
  list.toggleAttribute("data-more-after", list.scrollWidth - list.clientWidth - scrolled > 1);
}

/** One row of tabs. If it is too narrow, it scrolls sideways and brings the selected tab into view. */
export function TabsList({ className, ...props }: ComponentProps<typeof Radix.List>) {
  const ref = useRef<HTMLDivElement>(null);
  const shown = useRef<Element | null>(null);
  useEffect(() => {
    const list = ref.current;
    if (!list || typeof ResizeObserver === "undefined") return;
    const mark = () => markCutEnds(list);
    const sizes = new ResizeObserver(mark);
    sizes.observe(list);
    list.addEventListener("scroll", mark, { passive: true });
    return () => {
      sizes.disconnect();
      list.removeEventListener("scroll", mark);
    };
  }, []);
  useEffect(() => {
    const list = ref.current;
    const chosen = list?.querySelector<HTMLElement>("[aria-selected=true]");
    if (!list || !chosen) return;
    if (shown.current !== chosen) {
      shown.current = chosen;
      // not scrollIntoView: that would move the page too
      const start = chosen.offsetLeft - list.offsetLeft;
      const hidden = start < list.scrollLeft || start + chosen.offsetWidth > list.scrollLeft + list.clientWidth;
      if (hidden) list.scrollLeft = start - (list.clientWidth - chosen.offsetWidth) / 2;
    }
    markCutEnds(list);
  });
  return <Radix.List ref={ref} className={cn("tabs", className)} {...props} />;
}

export interface TabProps extends ComponentProps<typeof Radix.Trigger> {
  children: ReactNode;
  /** A count behind the word. */
  count?: number;
  /** The count is work that waits for this person: amber. */
  hot?: boolean;
}

export function Tab({ children, count, hot, className, ...props }: TabProps) {
  return (
    <Radix.Trigger className={cn("tab", className)} {...props}>
      {children}
      {count === undefined ? null : (
        <span className={cn("count", hot && count > 0 && "hot")}>{formatNumber(count)}</span>
      )}
    </Radix.Trigger>
  );
}

export function TabPanel({ className, ...props }: ComponentProps<typeof Radix.Content>) {
  return <Radix.Content className={cn("mt-6", className)} {...props} />;
}
