-- Foreign keys of the wanted schemas' own tables that a view of these schemas may show, directly or through other views.
with recursive shown (view, relation) as (
  select c.oid, c.oid from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any ($1) and c.relkind in ('v', 'm')
  union
  select shown.view, d.refobjid from shown
  join pg_catalog.pg_rewrite r on r.ev_class = shown.relation and r.ev_type = '1'
  join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid
    and d.refclassid = 'pg_catalog.pg_class'::regclass
)
select n.nspname, v.relname, k.conname
from shown
join pg_catalog.pg_constraint k on k.conrelid = shown.relation and k.contype = 'f'
join pg_catalog.pg_namespace kn on kn.oid = k.connamespace and kn.nspname = any ($1)
join pg_catalog.pg_class v on v.oid = shown.view
join pg_catalog.pg_namespace n on n.oid = v.relnamespace
