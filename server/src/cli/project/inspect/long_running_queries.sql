select
  pid as "pid",
  age(now(), query_start)::text as "Duration",
  query as "Query"
from pg_stat_activity
where query <> '' and state <> 'idle' and query_start < now() - interval '5 minutes'
order by query_start
