-- Relations of the wanted schemas with their columns in one row each; one row per column.
select c.oid, n.nspname, c.relname, c.relkind::text,
       c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(c.oid, false) & 20) = 20 as is_updatable_view,
       a.attname,
       coalesce(base.typname, t.typname) as type_name,
       not (a.attnotnull or t.typtype = 'd' and t.typnotnull) as is_nullable,
       a.atthasdef as has_default,
       a.attidentity::text as identity,
       c.relkind in ('r', 'p')
         or c.relkind in ('v', 'f') and pg_catalog.pg_column_is_updatable(c.oid, a.attnum, false) as is_updatable,
       a.attnum,
       type_schema.nspname,
       a.attgenerated <> '' as is_generated,
       -- What triggers and rules on a view make of it; they take whole rows.
       c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(c.oid, true) & 8) = 8 as takes_inserts,
       c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(c.oid, true) & 4) = 4 as takes_updates,
       c.relkind in ('v', 'f') and (
         exists (select from pg_catalog.pg_trigger g
                 where g.tgrelid = c.oid and not g.tgisinternal and g.tgtype & 64 <> 0 and g.tgtype & 20 <> 0)
         or exists (select from pg_catalog.pg_rewrite r
                    where r.ev_class = c.oid and r.is_instead and r.ev_type in ('2', '3') and r.ev_qual::text = '<>')
       ) as is_written_by_code,
       c.relkind in ('v', 'm') and exists (
         select from regexp_split_to_table(pg_catalog.col_description(c.oid, a.attnum), '\n') line
         where btrim(line, E' \t\r') = '@notNull'
       ) as is_declared_not_null
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_type base on t.typtype = 'd' and base.oid = t.typbasetype
left join pg_catalog.pg_namespace type_schema on type_schema.oid = coalesce(base.typnamespace, t.typnamespace)
where n.nspname = any ($1) and c.relkind in ('r', 'p', 'f', 'v', 'm')
