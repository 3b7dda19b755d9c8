select
  query as "Query",
  make_interval(secs => total_exec_time / 1000)::text as "Execution Time",
  to_char(100 * total_exec_time / nullif(sum(total_exec_time) over (), 0), 'FM990.0') || '%' as "Proportion of exec time",
  to_char(calls, 'FM999G999G999G990') as "Number Calls",
  make_interval(secs => ({io}) / 1000)::text as "Sync IO time"
from extensions.pg_stat_statements s
where dbid = (select oid from pg_database where datname = current_database())
order by total_exec_time desc
limit 10
