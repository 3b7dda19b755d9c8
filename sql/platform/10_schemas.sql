-- Schemas, extensions and what new objects in them are granted, as on Supabase.

create schema if not exists extensions;
grant usage on schema extensions to public;

-- Names that dumps and policies refer to, and the functions served at /functions/v1. All belong to the platform, so
-- that tools that empty a project leave them alone; the services get the rights they need. The auth server's own
-- migrations create the tables of auth.
do $$
declare
  owner constant name := case
    when current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres')
    then 'postgres' else current_user end;
  item record;
begin
  begin
    execute pg_catalog.format('grant create on database %I to supabase_admin', current_database());
  exception when insufficient_privilege then
    null; -- of a schema's new owner PostgreSQL wants it
  end;
  for item in
    select wanted.name, wanted.service, n.nspowner::regrole::text as owned_by
    from (values ('auth', 'supabase_auth_admin'), ('storage', 'supabase_storage_admin'),
                 ('realtime', 'supabase_realtime_admin'), ('graphql', null), ('graphql_public', null),
                 ('functions', null), ('ferrobase', null), ('_supavisor', null)) as wanted (name, service)
    left join pg_catalog.pg_namespace n on n.nspname = wanted.name
  loop
    if item.owned_by is null then
      execute pg_catalog.format('create schema %I', item.name);
    end if;
    begin
      if item.owned_by is distinct from 'supabase_admin' then
        execute pg_catalog.format('alter schema %I owner to supabase_admin', item.name);
      end if;
    exception when insufficient_privilege then
      raise warning 'schema % could not be given to supabase_admin', item.name;
    end;
    if item.service is not null then
      execute pg_catalog.format('grant all on schema %I to %I with grant option', item.name, item.service);
    end if;
    -- The role that runs this may still write there; a project's migrations may use and fill the schemas meant for
    -- them.
    execute pg_catalog.format('grant all on schema %I to %I', item.name, current_user);
    execute pg_catalog.format('grant usage on schema %I to %I', item.name, owner);
  end loop;
  execute pg_catalog.format('grant all on schema functions, extensions to %I with grant option', owner);
  execute pg_catalog.format('grant usage on schema storage to %I with grant option', owner);
  if owner <> current_user then
    execute pg_catalog.format('alter schema extensions owner to %I', owner);
  end if;
end $$;

grant usage on schema public, extensions to anon, authenticated, service_role;
grant usage on schema extensions to dashboard_user;
grant usage on schema auth, storage, realtime, functions, graphql, graphql_public to anon, authenticated, service_role;

-- Default privileges. A project may change those of public, so they are set only once.
do $$
declare
  owner constant name := case
    when current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres')
    then 'postgres' else current_user end;
  maker name;
  kind text;
begin
  foreach maker in array array['postgres', 'supabase_admin', owner] loop
    continue when not exists (select from pg_catalog.pg_roles where rolname = maker)
      or not pg_catalog.pg_has_role(maker, 'member')
      or exists (select from _supavisor.platform_files where name = '10_schemas.sql');
    foreach kind in array array['tables', 'routines', 'sequences'] loop
      execute pg_catalog.format('alter default privileges for role %I in schema public grant all on %s
                      to anon, authenticated, service_role', maker, kind);
      if owner <> maker then
        execute pg_catalog.format('alter default privileges for role %I in schema public grant all on %s to %I', maker, kind, owner);
      end if;
    end loop;
  end loop;
  if owner <> current_user then
    foreach kind in array array['tables', 'routines', 'sequences'] loop
      execute pg_catalog.format('alter default privileges in schema extensions grant all on %s to %I with grant option', kind, owner);
      execute pg_catalog.format('alter default privileges for role supabase_auth_admin in schema auth
                      grant all on %s to %I, dashboard_user', kind, owner);
      execute pg_catalog.format('alter default privileges for role supabase_realtime_admin in schema realtime
                      grant all on %s to %I, dashboard_user', kind, owner);
      execute pg_catalog.format('alter default privileges for role %I in schema storage
                      grant all on %s to %1$I, anon, authenticated, service_role', owner, kind);
      execute pg_catalog.format('alter default privileges in schema graphql_public
                      grant all on %s to %I, anon, authenticated, service_role', kind, owner);
    end loop;
  end if;
end $$;

do $$
declare
  extension text;
begin
  foreach extension in array array['pgcrypto', 'uuid-ossp', 'pg_stat_statements'] loop
    begin
      execute pg_catalog.format('create extension if not exists %I with schema extensions', extension);
    exception when insufficient_privilege or undefined_file or feature_not_supported then
      raise warning 'extension % is not available here', extension;
    end;
  end loop;
end $$;

-- Earlier versions created them without these grants.
do $$
declare
  owner constant name := case
    when current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres')
    then 'postgres' else current_user end;
begin
  execute pg_catalog.format('grant all on all functions in schema extensions to %I with grant option', owner);
exception when insufficient_privilege then
  null;
end $$;

-- The publication for realtime; migrations add their tables to it.
do $$
begin
  if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
    create publication supabase_realtime;
  end if;
  -- PostgreSQL 18 refuses updates of a table with replica identity full and a generated column unless the column is published. Realtime
  -- has such columns on Supabase too.
  if current_setting('server_version_num')::int >= 180000 then
    execute 'alter publication supabase_realtime set (publish_generated_columns = stored)';
  end if;
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    alter publication supabase_realtime owner to postgres;
  end if;
exception when insufficient_privilege then
  raise warning 'publication supabase_realtime could not be created';
end $$;
