-- Rewrite rules of the views that keys are followed through.
select r.ev_class, r.ev_action::text
from pg_catalog.pg_rewrite r
join pg_catalog.pg_class c on c.oid = r.ev_class
where c.relkind in ('v', 'm')
  and r.ev_type = '1'
  and c.relnamespace in (select oid from pg_catalog.pg_namespace where nspname = any ($1))
