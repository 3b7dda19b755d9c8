select
  format('%I.%I', n.nspname, c.relname) as "Name",
  pg_size_pretty(pg_table_size(c.oid)) as "Table size",
  pg_size_pretty(pg_indexes_size(c.oid)) as "Index size",
  pg_size_pretty(pg_total_relation_size(c.oid)) as "Total size",
  coalesce(s.n_live_tup, 0) as "Estimated row count",
  coalesce(s.seq_scan, 0) as "Seq scans"
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_stat_user_tables s on s.relid = c.oid
where c.relkind = 'r' and not n.nspname like any ({platform})
order by pg_total_relation_size(c.oid) desc, 1
