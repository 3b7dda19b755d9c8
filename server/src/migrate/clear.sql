-- Empties a database of what the project made, for `db reset` and `migration down` on another database. Runs in one transaction, as the
-- project's owner. The platform's schemas, roles and extensions stay, and so do buckets, files and the project's roles.
do $clear$
declare
  -- Extensions of every Supabase project.
  lasting constant text[] := array['pg_graphql', 'pg_net', 'pg_stat_statements', 'pgcrypto', 'pgjwt', 'pgsodium', 'plpgsql',
    'supabase_vault', 'uuid-ossp'];
  -- Schemas of the platform. Of `public` and `functions` the project's objects go.
  platform constant text[] := array['_analytics', '_realtime', '_supavisor', 'auth', 'cron', 'extensions', 'ferrobase', 'functions',
    'graphql', 'graphql_public', 'information_schema', 'net', 'pgbouncer', 'public', 'realtime', 'storage', 'supabase_functions',
    'supabase_migrations', 'vault'];
  item record;
begin
  -- Before anything that would start them.
  for item in
    select p.oid::pg_catalog.regprocedure as name from pg_catalog.pg_proc p
    where p.prorettype = 'pg_catalog.event_trigger'::pg_catalog.regtype and pg_catalog.pg_has_role(p.proowner, 'usage')
      and not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e')
  loop
    execute pg_catalog.format('drop function %s cascade', item.name);
  end loop;
  for item in
    select extname as name from pg_catalog.pg_extension where extname <> all (lasting) and pg_catalog.pg_has_role(extowner, 'usage')
  loop
    execute pg_catalog.format('drop extension if exists %I cascade', item.name);
  end loop;
  for item in
    select n.nspname as name from pg_catalog.pg_namespace n
    where n.nspname <> all (platform) and n.nspname not like 'pg\_%' and pg_catalog.pg_has_role(n.nspowner, 'usage')
      and not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and d.objid = n.oid and d.deptype = 'e')
      and not exists (select from pg_catalog.pg_extension e where e.extnamespace = n.oid)
  loop
    execute pg_catalog.format('drop schema %I cascade', item.name);
  end loop;
  -- Sequences of columns go with their tables.
  for item in
    select case object.type when 'statistics object' then 'statistics' else object.type end as type, object.identity
    from pg_catalog.pg_depend d, pg_catalog.pg_identify_object(d.classid, d.objid, 0) object
    where d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and d.deptype = 'n'
      and d.refobjid in (select oid from pg_catalog.pg_namespace where nspname in ('public', 'functions'))
      and object.type in ('table', 'view', 'materialized view', 'foreign table', 'sequence', 'function', 'procedure', 'aggregate',
        'type', 'operator', 'operator class', 'operator family', 'collation', 'conversion', 'statistics object',
        'text search configuration', 'text search dictionary')
      and not exists (select from pg_catalog.pg_depend e where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e')
    order by object.type = 'sequence'
  loop
    begin
      execute pg_catalog.format('drop %s if exists %s cascade', item.type, item.identity);
    exception when insufficient_privilege then
      -- The platform's.
    end;
  end loop;
  for item in
    select policyname as name, schemaname, tablename from pg_catalog.pg_policies where schemaname in ('auth', 'realtime', 'storage')
  loop
    begin
      execute pg_catalog.format('drop policy %I on %I.%I', item.name, item.schemaname, item.tablename);
    exception when insufficient_privilege then
      -- The platform's.
    end;
  end loop;
  for item in
    select pubname as name from pg_catalog.pg_publication
    where pubname not like 'supabase\_realtime%' and pg_catalog.pg_has_role(pubowner, 'usage')
  loop
    execute pg_catalog.format('drop publication %I', item.name);
  end loop;
  -- The accounts, and what the project's migrations and seeds have recorded.
  select pg_catalog.string_agg(c.oid::pg_catalog.regclass::text, ', ') as tables into item
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p') and c.relname not in ('schema_migrations', 'migrations')
    and n.nspname in ('auth', 'supabase_functions') and pg_catalog.has_table_privilege(c.oid, 'truncate');
  if item.tables is not null then
    execute 'truncate ' || item.tables || ' cascade';
  end if;
  for item in
    select c.oid::pg_catalog.regclass as name from pg_catalog.pg_class c
    where c.relkind = 'r' and c.relnamespace = pg_catalog.to_regnamespace('supabase_migrations')
      and c.relname in ('schema_migrations', 'seed_files')
  loop
    execute pg_catalog.format('truncate %s', item.name);
  end loop;
end $clear$;
