-- Schemas, extensions and what new objects in them are granted, as on Supabase.

create schema if not exists extensions;
grant usage on schema extensions to public;

do $$
declare
  extension text;
begin
  foreach extension in array array['pgcrypto', 'uuid-ossp'] loop
    begin
      execute format('create extension if not exists %I with schema extensions', extension);
    exception when insufficient_privilege or undefined_file or feature_not_supported then
      raise warning 'extension % is not available here', extension;
    end;
  end loop;
end $$;

grant usage on schema public to anon, authenticated, service_role;
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on routines to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;

do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres')
     and current_user <> 'postgres' and pg_catalog.pg_has_role('postgres', 'member') then
    alter default privileges for role postgres in schema public
      grant all on tables to anon, authenticated, service_role;
    alter default privileges for role postgres in schema public
      grant all on routines to anon, authenticated, service_role;
    alter default privileges for role postgres in schema public
      grant all on sequences to anon, authenticated, service_role;
  end if;
end $$;

-- Names that dumps and policies refer to; the tables of auth are the auth server's own migrations.
do $$
begin
  if pg_catalog.to_regnamespace('auth') is null then
    create schema auth authorization supabase_auth_admin;
  end if;
  if pg_catalog.to_regnamespace('storage') is null then
    create schema storage authorization supabase_storage_admin;
  end if;
  if pg_catalog.to_regnamespace('realtime') is null then
    create schema realtime authorization supabase_realtime_admin;
  end if;
end $$;

grant usage on schema auth, storage, realtime to anon, authenticated, service_role;
grant all on schema auth, storage, realtime to current_user;

-- PostgreSQL functions served at /functions/v1.
create schema if not exists functions;
grant usage on schema functions to anon, authenticated, service_role;

create schema if not exists graphql_public;
grant usage on schema graphql_public to anon, authenticated, service_role;

-- What realtime listens to; migrations add their tables to it.
do $$
begin
  if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime') then
    create publication supabase_realtime;
  end if;
exception when insufficient_privilege then
  raise warning 'publication supabase_realtime could not be created';
end $$;
