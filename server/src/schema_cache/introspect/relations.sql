-- Relations of the exposed schemas, partitions left out.
-- The bits of pg_relation_is_updatable are 1 << CmdType: 4 update, 8 insert, 16 delete.
select c.oid,
       n.nspname,
       c.relname,
       c.relkind,
       c.reltype,
       case
           when c.relkind in ('r', 'p') then 4 | 8 | 16
           when c.relkind in ('v', 'f') then pg_relation_is_updatable(c.oid, true)
           else 0
       end as events,
       d.description
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_description d
    on d.objoid = c.oid and d.objsubid = 0 and d.classoid = 'pg_catalog.pg_class'::regclass
where c.relkind in ('r', 'v', 'm', 'f', 'p')
  and not c.relispartition
  and n.nspname = any ($1)
