import type { ReactNode } from "react";

/** A few sums under each other: word left, figure right. */
export function RuledSum({ rows }: { rows: readonly { label: ReactNode; value: ReactNode }[] }) {
  return (
    <dl className="sum">
      {rows.map((row, index) => (
        <div key={index}>
          <dt>{row.label}</dt>
          <dd>{row.value}</dd>
        </div>
      ))}
    </dl>
  );
}
