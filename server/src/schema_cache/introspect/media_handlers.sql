-- Domains named like media types: aggregates that return them, over rows or anyelement; then functions.
with media_types as (
    select t.oid, n.nspname, t.typname
    from pg_catalog.pg_type t
    join pg_catalog.pg_namespace n on n.oid = t.typnamespace
    where t.typtype = 'd'
      and (t.typname = '*/*' or t.typname ~* '^[a-z0-9.-]+/[a-z0-9.+-]+$'))
select m.typname, pn.nspname, p.proname, an.nspname, at.typname
from media_types m
join pg_catalog.pg_proc p on p.prorettype = m.oid
join pg_catalog.pg_namespace pn on pn.oid = p.pronamespace
join pg_catalog.pg_type at on at.oid = p.proargtypes[0]
join pg_catalog.pg_namespace an on an.oid = at.typnamespace
left join pg_catalog.pg_class r on r.reltype = at.oid
where p.prokind = 'a'
  and p.pronargs = 1
  and pn.nspname = any ($1)
  and (at.oid = 'anyelement'::regtype or r.relkind in ('r', 'v', 'm', 'f', 'p'))
union all
select m.typname, m.nspname, m.typname, pn.nspname, p.proname
from media_types m
join pg_catalog.pg_proc p on p.prorettype = m.oid
join pg_catalog.pg_namespace pn on pn.oid = p.pronamespace
where p.prokind = 'f'
  and not p.proretset
  and pn.nspname = any ($1)
