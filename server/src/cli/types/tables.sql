-- Columns of the relations in the wanted schemas, one per row, with their relation. PostgreSQL asks the handler of a foreign table what can
-- be written; one that is not served raises an error instead.
with recursive unserved (relation) as (
  select t.ftrelid
  from pg_catalog.pg_foreign_table t
  join pg_catalog.pg_foreign_server s on s.oid = t.ftserver
  join pg_catalog.pg_foreign_data_wrapper w on w.oid = s.srvfdw
  left join pg_catalog.pg_proc p on p.oid = w.fdwhandler
  where p.oid is null or p.prosrc = 'fdw_handler_in'
  union
  select r.ev_class
  from unserved u
  join pg_catalog.pg_depend d
    on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = u.relation and d.classid = 'pg_catalog.pg_rewrite'::regclass
  join pg_catalog.pg_rewrite r on r.oid = d.objid
)
select c.oid, n.nspname, c.relname, c.relkind::text,
       coalesce(c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(asked.oid, false) & 20) = 20, false) as is_updatable_view,
       a.attname,
       coalesce(base.typname, t.typname) as type_name,
       not (a.attnotnull or t.typtype = 'd' and t.typnotnull) as is_nullable,
       a.atthasdef as has_default,
       a.attidentity::text as identity,
       c.relkind in ('r', 'p')
         or c.relkind in ('v', 'f') and coalesce(pg_catalog.pg_column_is_updatable(asked.oid, a.attnum, false), false) as is_updatable,
       a.attnum,
       type_schema.nspname,
       a.attgenerated <> '' as is_generated,
       -- Insertable through triggers or rules of a view, which take whole rows.
       coalesce(c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(asked.oid, true) & 8) = 8, false) as takes_inserts,
       coalesce(c.relkind = 'v' and (pg_catalog.pg_relation_is_updatable(asked.oid, true) & 4) = 4, false) as takes_updates,
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
left join pg_catalog.pg_class asked on asked.oid = c.oid and asked.oid not in (select relation from unserved)
left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_type base on t.typtype = 'd' and base.oid = t.typbasetype
left join pg_catalog.pg_namespace type_schema on type_schema.oid = coalesce(base.typnamespace, t.typnamespace)
where n.nspname = any ($1) and c.relkind in ('r', 'p', 'f', 'v', 'm')
