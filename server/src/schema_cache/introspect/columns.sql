-- Columns of the exposed relations, one row each. Types are resolved from types.sql.
select a.attrelid,
       a.attnum,
       a.attname,
       a.atttypid,
       a.atttypmod,
       case when a.atttypmod >= 0 then format_type(a.atttypid, a.atttypmod) end as type_with_modifier,
       a.attnotnull,
       case
           when a.attidentity = 'd' then
               (select format('nextval(%L)', s.objid::regclass)
                from pg_catalog.pg_depend s
                where s.refclassid = 'pg_catalog.pg_class'::regclass and s.refobjid = a.attrelid
                  and s.refobjsubid = a.attnum and s.deptype = 'i' and s.classid = 'pg_catalog.pg_class'::regclass
                limit 1)
           when a.attgenerated <> '' then null
           when a.atthasdef then
               -- A default names no column, so the relation, whose name would be looked up each time, is not needed.
               (select pg_get_expr(ad.adbin, 0)
                from pg_catalog.pg_attrdef ad
                where ad.adrelid = a.attrelid and ad.adnum = a.attnum)
       end as default_sql,
       a.atthasdef or a.attidentity <> '' as has_own_default,
       d.description
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
left join pg_catalog.pg_description d
    on d.objoid = a.attrelid and d.objsubid = a.attnum and d.classoid = 'pg_catalog.pg_class'::regclass
where a.attnum > 0
  and not a.attisdropped
  and c.relkind in ('r', 'v', 'm', 'f', 'p')
  and not c.relispartition
  and c.relnamespace in (select oid from pg_catalog.pg_namespace where nspname = any ($1))
