-- Relations of the wanted schemas with their columns in one row each; one row per column.
select c.oid, n.nspname, c.relname, c.relkind::text,
       c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(c.oid, false) & 20) = 20 as is_updatable_view,
       a.attname,
       coalesce(base.typname, t.typname) as type_name,
       not (a.attnotnull or t.typtype = 'd' and t.typnotnull) as is_nullable,
       a.atthasdef as has_default,
       a.attidentity::text as identity,
       c.relkind in ('r', 'p')
         or c.relkind in ('v', 'f') and pg_catalog.pg_column_is_updatable(c.oid, a.attnum, false) as is_updatable
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_type base on t.typtype = 'd' and base.oid = t.typbasetype
where n.nspname = any ($1) and c.relkind in ('r', 'p', 'f', 'v', 'm')
