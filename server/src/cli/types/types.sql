-- Every type: enums with their labels, composite types with their attributes, row types of relations.
select t.oid, n.nspname, t.typname, pg_catalog.format_type(t.oid, null) as format, t.typrelid,
       array(select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder),
       array(select a.attname::text from pg_catalog.pg_attribute a
             where a.attrelid = c.oid and c.relkind = 'c' and not a.attisdropped and a.attnum > 0 order by a.attnum),
       array(select a.atttypid from pg_catalog.pg_attribute a
             where a.attrelid = c.oid and c.relkind = 'c' and not a.attisdropped and a.attnum > 0 order by a.attnum)
from pg_catalog.pg_type t
join pg_catalog.pg_namespace n on n.oid = t.typnamespace
left join pg_catalog.pg_class c on c.oid = t.typrelid
-- $1: also the row types of foreign tables.
where t.typrelid = 0 or c.relkind in ('c', 'r', 'v', 'm', 'p') or c.relkind = 'f' and $1
order by t.oid
