-- Exclusive locks, and the statements that hold or want them.
select
  a.pid as "pid",
  coalesce(c.relname, 'null') as "relname",
  coalesce(l.transactionid::text, 'null') as "transaction id",
  l.granted::text as "granted",
  a.query as "stmt",
  age(now(), a.query_start)::text as "age"
from pg_locks l
join pg_stat_activity a on a.pid = l.pid
left join pg_class c on c.oid = l.relation
where l.mode = 'ExclusiveLock' and a.query <> '<insufficient privilege>' and a.pid <> pg_backend_pid()
order by a.query_start
