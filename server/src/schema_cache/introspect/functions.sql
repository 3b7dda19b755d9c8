-- Functions of the exposed schemas. Arrays of names and modes cover OUT parameters, proargtypes does not.
select n.nspname,
       p.proname,
       d.description,
       p.proargnames,
       p.proargtypes::oid[] as input_types,
       p.proargmodes,
       p.pronargdefaults,
       p.prorettype,
       p.proretset,
       p.provolatile,
       p.prorows = 1 as one_row,
       (select substr(s, strpos(s, '=') + 1)
        from unnest(p.proconfig) s
        where s like 'default\_transaction\_isolation=%'
        limit 1) as isolation,
       array(select s from unnest(p.proconfig) s where s ~ any ($2)) as hoisted,
       has_function_privilege(p.oid, 'execute') as executable
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
left join pg_catalog.pg_description d
    on d.objoid = p.oid and d.objsubid = 0 and d.classoid = 'pg_catalog.pg_proc'::regclass
where p.prokind = 'f'
  and n.nspname = any ($1)
