-- Total sizes and cache hit rates.
with sizes (relkind, bytes) as (
  select c.relkind, sum(pg_relation_size(c.oid))
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'i', 't') and not n.nspname like any ({platform})
  group by c.relkind
)
select
  current_database() as "Name",
  pg_size_pretty(pg_database_size(current_database())) as "Database Size",
  pg_size_pretty(coalesce((select bytes from sizes where relkind = 'i'), 0)) as "Total Index Size",
  pg_size_pretty(coalesce((select bytes from sizes where relkind = 'r'), 0)) as "Total Table Size",
  pg_size_pretty(coalesce((select bytes from sizes where relkind = 't'), 0)) as "Total Toast Size",
  coalesce((select (now() - stats_reset)::text from extensions.pg_stat_statements_info), 'N/A') as "Time Since Stats Reset",
  coalesce((
    select round(sum(idx_blks_hit) / nullif(sum(idx_blks_hit + idx_blks_read), 0), 2)::text
    from pg_statio_user_indexes where not schemaname like any ({platform})
  ), 'N/A') as "Index Hit Rate",
  coalesce((
    select round(sum(heap_blks_hit) / nullif(sum(heap_blks_hit + heap_blks_read), 0), 2)::text
    from pg_statio_user_tables where not schemaname like any ({platform})
  ), 'N/A') as "Table Hit Rate",
  pg_size_pretty(coalesce((select sum(size) from pg_ls_waldir()), 0)) as "WAL Size"
