-- What the database has, apart from what belongs to PostgreSQL: `classid`, `objid`, `objsubid` for `pg_identify_object`.
select 'pg_catalog.pg_class'::pg_catalog.regclass as classid, oid as objid, 0 as objsubid
from pg_catalog.pg_class where relkind in ('r', 'v', 'm', 'S', 'f', 'p') and relpersistence <> 't'
union all
select 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, 0
from pg_catalog.pg_type t
where t.typtype in ('d', 'e', 'r')
   or t.typtype = 'c' and exists (select from pg_catalog.pg_class c where c.oid = t.typrelid and c.relkind = 'c')
union all
-- Columns that go with their type.
select 'pg_catalog.pg_class'::pg_catalog.regclass, a.attrelid, a.attnum
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p', 'f') and c.relpersistence <> 't'
join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attnum > 0 and not a.attisdropped
  and t.typnamespace not in ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace)
union all select 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_proc
union all select 'pg_catalog.pg_operator'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_operator
union all select 'pg_catalog.pg_cast'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_cast
union all select 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_namespace where nspname not like 'pg\_%'
union all select 'pg_catalog.pg_foreign_data_wrapper'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_foreign_data_wrapper
union all select 'pg_catalog.pg_event_trigger'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_event_trigger
union all select 'pg_catalog.pg_trigger'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_trigger where not tgisinternal
union all select 'pg_catalog.pg_policy'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_policy
union all select 'pg_catalog.pg_attrdef'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_attrdef
union all select 'pg_catalog.pg_constraint'::pg_catalog.regclass, oid, 0 from pg_catalog.pg_constraint where contype in ('c', 'f')
