-- Keys of the whole database: tables of hidden schemas count, views of exposed ones may show them.
select c.contype, c.conname, c.conrelid, c.conkey, c.confrelid, c.confkey, c.conparentid = 0 as is_own
from pg_catalog.pg_constraint c
where c.contype in ('p', 'u', 'f')
  and c.connamespace <> 'pg_catalog'::regnamespace
