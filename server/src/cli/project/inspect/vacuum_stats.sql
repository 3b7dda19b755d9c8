-- When each table was last vacuumed, and whether autovacuum is due. Thresholds of the table override the server's.
with tables as (
  select
    c.oid, s.*, c.reltuples,
    (select jsonb_object_agg(option_name, option_value) from pg_options_to_table(c.reloptions)) as options
  from pg_class c join pg_stat_user_tables s on s.relid = c.oid
  where not s.schemaname like any ({platform})
), limits as (
  select
    t.*,
    coalesce(options ->> 'autovacuum_vacuum_threshold', current_setting('autovacuum_vacuum_threshold'))::numeric
      + coalesce(options ->> 'autovacuum_vacuum_scale_factor', current_setting('autovacuum_vacuum_scale_factor'))::numeric
        * greatest(reltuples, 0)::numeric as vacuum_limit,
    coalesce(options ->> 'autovacuum_analyze_threshold', current_setting('autovacuum_analyze_threshold'))::numeric
      + coalesce(options ->> 'autovacuum_analyze_scale_factor', current_setting('autovacuum_analyze_scale_factor'))::numeric
        * greatest(reltuples, 0)::numeric as analyze_limit
  from tables t
)
select
  format('%I.%I', schemaname, relname) as "Table",
  coalesce(to_char(last_vacuum, 'YYYY-MM-DD HH24:MI'), '') as "Last Vacuum",
  coalesce(to_char(last_autovacuum, 'YYYY-MM-DD HH24:MI'), '') as "Last Auto Vacuum",
  coalesce(to_char(last_analyze, 'YYYY-MM-DD HH24:MI'), '') as "Last Analyze",
  coalesce(to_char(last_autoanalyze, 'YYYY-MM-DD HH24:MI'), '') as "Last Auto Analyze",
  case when reltuples < 0 then 'No stats' else to_char(reltuples, 'FM9G999G999G999') end as "Row count",
  to_char(n_dead_tup, 'FM9G999G999G990') as "Dead row count",
  case when n_dead_tup > vacuum_limit then 'yes' else 'no' end as "Expect autovacuum?",
  case when n_mod_since_analyze > analyze_limit then 'yes' else 'no' end as "Expect autoanalyze?"
from limits
order by n_dead_tup desc, 1
