select n.nspname, d.description
from pg_catalog.pg_namespace n
join pg_catalog.pg_description d on d.objoid = n.oid and d.classoid = 'pg_catalog.pg_namespace'::regclass
where n.nspname = any ($1)
