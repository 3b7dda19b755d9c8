import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** A plain table in the look of the lists. For rows of data use `components/data-table`, which becomes cards on phones. */
export function Table({ className, ...props }: ComponentProps<"table">) {
  return (
    <div className="table-wrap">
      <table className={cn("data-table", className)} {...props} />
    </div>
  );
}
