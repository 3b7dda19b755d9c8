-- Implicit casts by function between a domain and json or text.
select c.castsource::regtype::text, c.casttarget::regtype::text, c.castfunc::regproc::text
from pg_catalog.pg_cast c
join pg_catalog.pg_type s on s.oid = c.castsource
join pg_catalog.pg_type t on t.oid = c.casttarget
where c.castcontext = 'i'
  and c.castmethod = 'f'
  and has_function_privilege(c.castfunc, 'execute')
  and (s.typtype = 'd' and c.casttarget in ('json'::regtype, 'text'::regtype)
    or t.typtype = 'd' and c.castsource in ('json'::regtype, 'text'::regtype))
