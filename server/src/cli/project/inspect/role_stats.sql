select
  r.rolname as "Role name",
  (select count(*) from pg_stat_activity a where a.usesysid = r.oid) as "Active connections",
  case r.rolconnlimit when -1 then current_setting('max_connections')::int else r.rolconnlimit end as "Connection limit",
  array_to_string(r.rolconfig, ',') as "Custom config"
from pg_roles r
order by 1 desc
