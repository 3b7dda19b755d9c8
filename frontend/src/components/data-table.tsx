/** Rows of data: a table on desks (sort in the head, the row opens the detail), cards on phones. */
import { ArrowDown, ArrowUp, ArrowUpDown } from "lucide-react";
import type { ReactNode } from "react";
import { Link, useNavigate } from "react-router-dom";
import { cn } from "@/lib/cn";
import { t } from "@/messages";

export interface Column<T> {
  key: string;
  header: string;
  cell: (row: T) => ReactNode;
  /** Sortable; the page sorts on the server and passes `sort` back. */
  sortable?: boolean;
  align?: "left" | "right";
  /**
   * On phones a card fills two columns in the table's order; `wide` takes a whole line, `top` and `low` the right side
   * of the first and second line, `badge` is right-aligned in its place, `hide` is left out.
   */
  card?: "head" | "badge" | "wide" | "top" | "low" | "hide";
  /** Shows the header's word before the value on a card too, if the value alone is unclear. */
  cardLabel?: boolean;
}

export interface Sort {
  key: string;
  direction: "asc" | "desc";
}

export interface DataTableProps<T> {
  rows: readonly T[];
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  /** The link of a row, in its first column; a click anywhere on the row follows it. */
  rowHref?: (row: T) => string;
  /** Names the table for screen readers. */
  caption: string;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  className?: string;
}

function SortHead({
  header,
  active,
  onSort,
}: {
  header: string;
  active: Sort["direction"] | null;
  onSort: () => void;
}) {
  const Icon = active === "asc" ? ArrowUp : active === "desc" ? ArrowDown : ArrowUpDown;
  return (
    <button type="button" onClick={onSort} title={t("common.sortBy", { column: header })}>
      {header}
      <Icon aria-hidden="true" />
    </button>
  );
}

export function DataTable<T>({ rows, columns, rowKey, rowHref, caption, sort, onSort, className }: DataTableProps<T>) {
  const navigate = useNavigate();
  return (
    <div className={cn("panel", className)}>
      <div className="table-wrap">
        <table className="data-table to-cards">
          <caption className="visually-hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => {
                const active = sort?.key === column.key ? sort.direction : null;
                return (
                  <th
                    key={column.key}
                    scope="col"
                    className={cn(column.align === "right" && "r")}
                    aria-sort={active ? (active === "asc" ? "ascending" : "descending") : undefined}
                  >
                    {column.sortable && onSort ? (
                      <SortHead
                        header={column.header}
                        active={active}
                        onSort={() => onSort({ key: column.key, direction: active === "asc" ? "desc" : "asc" })}
                      />
                    ) : (
                      column.header
                    )}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const href = rowHref?.(row);
              return (
                <tr
                  key={rowKey(row)}
                  data-link={href ? "" : undefined}
                  onClick={(event) => {
                    const inside = (event.target as HTMLElement).closest("a, button, input, [role=menuitem]");
                    if (href && !inside && !window.getSelection()?.toString()) void navigate(href);
                  }}
                >
                  {columns.map((column, index) => (
                    <td
                      key={column.key}
                      data-label={column.cardLabel ? column.header : undefined}
                      className={cn(
                        column.align === "right" && "r",
                        column.card === "wide" && "wide",
                        column.card === "top" && "top",
                        column.card === "low" && "low",
                        column.card === "hide" && "hide",
                        column.card === "badge" && "justify-self-end",
                      )}
                    >
                      {index === 0 && href ? (
                        <Link className="id no-underline" to={href}>
                          {column.cell(row)}
                        </Link>
                      ) : (
                        column.cell(row)
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}
