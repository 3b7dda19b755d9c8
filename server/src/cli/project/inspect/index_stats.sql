-- An index's usage is its share of all scans of the table.
select
  format('%I.%I', i.schemaname, i.indexrelname) as "Name",
  pg_size_pretty(pg_relation_size(i.indexrelid)) as "Size",
  case
    when i.idx_scan = 0 then '0'
    else round(100.0 * i.idx_scan / (i.idx_scan + coalesce(t.seq_scan, 0)), 1)::text
  end || '%' as "Percent used",
  i.idx_scan as "Index scans",
  coalesce(t.seq_scan, 0) as "Seq scans",
  (i.idx_scan = 0)::text as "Unused"
from pg_stat_user_indexes i
left join pg_stat_user_tables t on t.relid = i.relid
where not i.schemaname like any ({platform})
order by pg_relation_size(i.indexrelid) desc, 1
