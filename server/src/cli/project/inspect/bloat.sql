-- Estimates bloat from the planner's statistics: the pages of a table or index, compared with the pages that its rows need. A row
-- takes its columns' average widths, a header of 24 bytes and a line pointer of 4; a page has a header of 24 bytes.
with widths as (
  select s.schemaname, s.tablename, sum((1 - s.null_frac) * s.avg_width) as bytes
  from pg_stats s
  where not s.schemaname like any ({platform})
  group by 1, 2
), needed as (
  select
    'table' as type, format('%I.%I', n.nspname, c.relname) as name, c.relpages as pages,
    ceil(greatest(c.reltuples, 0) * (28 + 8 * ceil(w.bytes / 8)) / (current_setting('block_size')::int - 24)) as wanted
  from widths w
  join pg_namespace n on n.nspname = w.schemaname
  join pg_class c on c.relnamespace = n.oid and c.relname = w.tablename and c.relkind in ('r', 'm')
  union all
  select
    'index', format('%I.%I::%I', n.nspname, t.relname, c.relname), c.relpages,
    ceil(greatest(c.reltuples, 0) * (12 + 8 * ceil(w.bytes / 8)) / (current_setting('block_size')::int - 40) / 0.9)
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_class t on t.oid = i.indrelid
  join pg_namespace n on n.oid = t.relnamespace
  join lateral (
    select sum((1 - s.null_frac) * s.avg_width) as bytes
    from pg_attribute a
    join pg_stats s on s.schemaname = n.nspname and s.tablename = t.relname and s.attname = a.attname
    where a.attrelid = t.oid and a.attnum = any (i.indkey::int2[])
  ) w on w.bytes is not null
  where not n.nspname like any ({platform})
)
select
  type as "Type",
  name as "Name",
  round(case when wanted = 0 then 0 else pages / wanted::numeric end, 1) as "Bloat",
  pg_size_pretty(greatest(pages - wanted, 0)::bigint * current_setting('block_size')::int) as "Waste"
from needed
order by greatest(pages - wanted, 0) desc, 3 desc, 2
