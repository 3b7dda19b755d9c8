-- Columns of all relations that cannot be null, because of the column or of its domain.
select a.attrelid, a.attnum
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p', 'f')
join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attnum > 0 and not a.attisdropped and (a.attnotnull or t.typtype = 'd' and t.typnotnull)
