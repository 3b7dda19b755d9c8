-- Relations of the exposed schemas, partitions left out.
-- The bits of pg_relation_is_updatable are 1 << CmdType: 4 update, 8 insert, 16 delete.
--
-- For a foreign table PostgreSQL asks the wrapper's handler. Without one, or with one of an extension that is not served, it raises an
-- error, also for views on such a table.
with recursive unserved (relation) as (
    select t.ftrelid
    from pg_catalog.pg_foreign_table t
    join pg_catalog.pg_foreign_server s on s.oid = t.ftserver
    join pg_catalog.pg_foreign_data_wrapper w on w.oid = s.srvfdw
    left join pg_catalog.pg_proc p on p.oid = w.fdwhandler
    where p.oid is null or p.prosrc = 'fdw_handler_in'
    union
    select r.ev_class
    from unserved u
    join pg_catalog.pg_depend d
        on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = u.relation and d.classid = 'pg_catalog.pg_rewrite'::regclass
    join pg_catalog.pg_rewrite r on r.oid = d.objid
)
select c.oid,
       n.nspname,
       c.relname,
       c.relkind,
       c.reltype,
       case
           when c.relkind in ('r', 'p') then 4 | 8 | 16
           when c.oid in (select relation from unserved) then 0
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
