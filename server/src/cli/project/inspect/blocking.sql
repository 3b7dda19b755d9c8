-- Which session blocks which, from `pg_blocking_pids`, which covers every kind of lock.
select
  waiting.pid as "blocked pid",
  holding.query as "blocking statement",
  age(now(), holding.query_start)::text as "blocking duration",
  holding.pid as "blocking pid",
  waiting.query as "blocked statement",
  age(now(), waiting.query_start)::text as "blocked duration"
from pg_stat_activity waiting
cross join lateral unnest(pg_blocking_pids(waiting.pid)) as blocker (pid)
join pg_stat_activity holding on holding.pid = blocker.pid
order by waiting.query_start
