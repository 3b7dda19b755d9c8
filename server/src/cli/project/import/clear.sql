-- Removes everything that a project has created in its database, so that a repeated import starts as the first did. Roles stay.
do $$
declare
  item record;
  platform constant text := '^(information_schema|pg_.*|_analytics|_realtime|_supavisor|auth|etl|extensions|ferrobase|pgbouncer|'
    'realtime|storage|supabase_functions|supabase_migrations|cron|dbdev|graphql|graphql_public|net|pgmq|pgsodium|pgsodium_masks|'
    'pgtle|repack|tiger|tiger_data|timescaledb_.*|_timescaledb_.*|topology|vault|public|functions)$';
begin
  for item in
    select t.evtname from pg_catalog.pg_event_trigger t
    join pg_catalog.pg_proc p on p.oid = t.evtfoid join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where n.nspname !~ platform or n.nspname = 'public'
  loop
    execute format('drop event trigger %I', item.evtname);
  end loop;
  for item in select p.schemaname, p.tablename, p.policyname from pg_catalog.pg_policies p
    where p.schemaname in ('auth', 'realtime', 'storage')
  loop
    execute format('drop policy %I on %I.%I', item.policyname, item.schemaname, item.tablename);
  end loop;
  for item in
    select t.tgname, t.tgrelid::regclass as relation from pg_catalog.pg_trigger t
    join pg_catalog.pg_class c on c.oid = t.tgrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    join pg_catalog.pg_proc p on p.oid = t.tgfoid join pg_catalog.pg_namespace f on f.oid = p.pronamespace
    where not t.tgisinternal and n.nspname in ('auth', 'realtime', 'storage') and (f.nspname !~ platform or f.nspname = 'public')
  loop
    execute format('drop trigger %I on %s', item.tgname, item.relation);
  end loop;
  for item in select pubname from pg_catalog.pg_publication where pubname !~ '^supabase_realtime'
  loop
    execute format('drop publication %I', item.pubname);
  end loop;
  for item in select nspname from pg_catalog.pg_namespace where nspname !~ platform
  loop
    execute format('drop schema %I cascade', item.nspname);
  end loop;
  -- The platform's schemas keep their owner, privileges and default privileges. Objects of an extension go with the extension.
  loop
    select case
        when c.relkind = 'S' then format('drop sequence %s cascade', c.oid::regclass)
        when c.relkind = 'v' then format('drop view %s cascade', c.oid::regclass)
        when c.relkind = 'm' then format('drop materialized view %s cascade', c.oid::regclass)
        when c.relkind = 'f' then format('drop foreign table %s cascade', c.oid::regclass)
        when c.relkind = 'c' then format('drop type %s cascade', c.reltype::regtype)
        else format('drop table %s cascade', c.oid::regclass)
      end as statement into item
    from pg_catalog.pg_class c
    where c.relnamespace in ('public'::regnamespace, to_regnamespace('functions')) and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c', 'S')
      and not exists (select from pg_catalog.pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass
        and d.deptype in ('e', 'i'))
    limit 1;
    exit when not found;
    execute item.statement;
  end loop;
  loop
    select format('drop routine %s cascade', p.oid::regprocedure) as statement into item
    from pg_catalog.pg_proc p
    where p.pronamespace in ('public'::regnamespace, to_regnamespace('functions'))
      and not exists (select from pg_catalog.pg_depend d where d.objid = p.oid and d.classid = 'pg_proc'::regclass
        and d.deptype = 'e')
    limit 1;
    exit when not found;
    execute item.statement;
  end loop;
  loop
    select format('drop %s %s cascade', case t.typtype when 'd' then 'domain' else 'type' end, t.oid::regtype) as statement
      into item
    from pg_catalog.pg_type t
    where t.typnamespace in ('public'::regnamespace, to_regnamespace('functions')) and t.typtype in ('d', 'e', 'r')
      and not exists (select from pg_catalog.pg_depend d where d.objid = t.oid and d.classid = 'pg_type'::regclass
        and d.deptype = 'e')
    limit 1;
    exit when not found;
    execute item.statement;
  end loop;
  -- Accounts and files. The platform's own migration history stays.
  for item in
    select n.nspname, string_agg(c.oid::regclass::text, ', ') as tables
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname in ('auth', 'storage')
      and (n.nspname, c.relname) not in (('auth', 'schema_migrations'), ('storage', 'migrations'))
    group by n.nspname
  loop
    execute format('truncate %s', item.tables);
  end loop;
  if to_regclass('cron.job') is not null then
    delete from cron.job;
  end if;
end $$;
