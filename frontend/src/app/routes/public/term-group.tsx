/** A heading over a list of terms with a sentence each, for the benefits on public pages. */
export function TermGroup({ title, items }: { title: string; items: readonly (readonly [string, string])[] }) {
  return (
    <div className="group border-t-0! p-0!">
      <header>
        <h2 className="serif">{title}</h2>
      </header>
      <dl>
        {items.map(([term, body]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{body}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
