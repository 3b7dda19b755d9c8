-- Foreign keys that a view of the wanted schemas ($1) may show, directly or through views of the schemas $2, or of any if it is null.
-- Keys of the wanted schemas' own tables only, unless $3.
with recursive shown (view, relation) as (
  select c.oid, c.oid from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any ($1) and c.relkind in ('v', 'm')
  union
  select shown.view, d.refobjid from shown
  join pg_catalog.pg_class through on through.oid = shown.relation
  join pg_catalog.pg_namespace tn on tn.oid = through.relnamespace and (tn.nspname = any ($2::text[])) is not false
  join pg_catalog.pg_rewrite r on r.ev_class = shown.relation and r.ev_type = '1'
  join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid
    and d.refclassid = 'pg_catalog.pg_class'::regclass
)
select n.nspname, v.relname, k.conname
from shown
join pg_catalog.pg_constraint k on k.conrelid = shown.relation and k.contype = 'f'
join pg_catalog.pg_namespace kn on kn.oid = k.connamespace and (kn.nspname = any ($1) or $3)
join pg_catalog.pg_class v on v.oid = shown.view
join pg_catalog.pg_namespace n on n.oid = v.relnamespace
