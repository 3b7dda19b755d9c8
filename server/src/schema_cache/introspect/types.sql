-- Types that columns of the exposed relations, functions of the exposed schemas and domains are made of.
select t.oid,
       format_type(t.oid, null) as spelled,
       format_type(t.oid, -1) as unmodified,
       n.nspname,
       t.typname,
       t.typtype,
       t.typbasetype,
       t.typtypmod,
       t.typnotnull,
       case when t.typdefaultbin is not null then pg_get_expr(t.typdefaultbin, 0) end as default_sql
from pg_catalog.pg_type t
join pg_catalog.pg_namespace n on n.oid = t.typnamespace
where t.typtype = 'd'
   or t.oid in (select typbasetype from pg_catalog.pg_type where typtype = 'd')
   or t.oid in (
       select a.atttypid
       from pg_catalog.pg_attribute a
       join pg_catalog.pg_class c on c.oid = a.attrelid
       where a.attnum > 0 and c.relkind in ('r', 'v', 'm', 'f', 'p') and not c.relispartition
         and c.relnamespace in (select oid from pg_catalog.pg_namespace where nspname = any ($1)))
   or t.oid in (
       select unnest(array_append(p.proargtypes::oid[], p.prorettype))
       from pg_catalog.pg_proc p
       where p.pronamespace in (select oid from pg_catalog.pg_namespace where nspname = any ($1)))
