-- Callable functions of the wanted schemas. Argument arrays have one entry per argument of any mode.
select n.nspname, p.proname,
       pg_catalog.pg_get_function_arguments(p.oid) as arguments,
       p.prorettype,
       pg_catalog.pg_get_function_result(p.oid) as result,
       rt.typrelid,
       p.proretset,
       p.prorows::float8,
       coalesce(p.proargmodes::text[], array_fill('i'::text, array[p.pronargs::int])) as modes,
       coalesce(p.proargnames, array_fill(''::text, array[cardinality(coalesce(p.proallargtypes, p.proargtypes::oid[]))])) as names,
       coalesce(p.proallargtypes, p.proargtypes::oid[]) as types,
       p.pronargs::int,
       p.pronargdefaults::int
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
join pg_catalog.pg_type rt on rt.oid = p.prorettype
where n.nspname = any ($1) and p.prokind = 'f' and rt.typname not in ('trigger', 'event_trigger')
order by p.oid
