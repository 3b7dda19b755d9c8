-- Compares blocks read with the blocks that written rows fill at the table's density. A ratio above five counts as
-- read-heavy or write-heavy.
with traffic as (
  select
    s.schemaname, s.relname, coalesce(b.heap_blks_read, 0) + coalesce(b.idx_blks_read, 0) as blocks_read,
    s.n_tup_ins + s.n_tup_upd + s.n_tup_del as written,
    c.relpages * (s.n_tup_ins + s.n_tup_upd + s.n_tup_del) / greatest(c.reltuples, 1)::numeric as blocks_written
  from pg_stat_user_tables s
  join pg_statio_user_tables b using (relid)
  join pg_class c on c.oid = s.relid
)
select
  schemaname as "Schema",
  relname as "Table",
  blocks_read as "Blocks Read",
  written as "Write Tuples",
  round(blocks_written, 1) as "Blocks Write",
  case
    when blocks_read = 0 and blocks_written = 0 then 'No Activity'
    when blocks_read = 0 then 'Write-Only'
    when blocks_written = 0 then 'Read-Only'
    when blocks_written > 5 * blocks_read then round(blocks_written / blocks_read, 1) || ':1 (Write-Heavy)'
    when blocks_read > 5 * blocks_written then '1:' || round(blocks_read / blocks_written, 1) || ' (Read-Heavy)'
    else '1:1 (Balanced)'
  end as "Activity Ratio"
from traffic
where blocks_read > 0 and written > 0
order by blocks_read + blocks_written desc
