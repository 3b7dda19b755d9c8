-- The types asked for, all domains, and what those are made of.
select t.oid,
       format_type(t.oid, null) as spelled,
       format_type(t.oid, -1) as unmodified,
       n.nspname,
       t.typname,
       t.typtype,
       t.typbasetype,
       t.typtypmod,
       t.typnotnull,
       case when t.typdefaultbin is not null then pg_get_expr(t.typdefaultbin, 0) end as default_sql,
       exists (select from pg_catalog.pg_class c where c.oid = t.typrelid and c.relispartition and c.relkind <> 'i')
           as is_partition
from pg_catalog.pg_type t
join pg_catalog.pg_namespace n on n.oid = t.typnamespace
where t.typtype = 'd'
   or t.oid in (select typbasetype from pg_catalog.pg_type where typtype = 'd')
   or t.oid = any ($1)
