-- Supabase's additions for webhooks in a local stack: pg_net, and triggers that post a row to a URL. Run once, in
-- the database of a project that `ferrobase start` serves.
create extension if not exists pg_net with schema extensions;
-- A project may drop it, as on Supabase.
with given as (
  update pg_catalog.pg_extension set extowner = 'postgres'::pg_catalog.regrole
  where extname = 'pg_net' and extowner = 'supabase_admin'::pg_catalog.regrole
  returning oid
)
insert into pg_catalog.pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
select (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()),
       'pg_catalog.pg_extension'::pg_catalog.regclass, given.oid, 0,
       'pg_catalog.pg_authid'::pg_catalog.regclass, 'postgres'::pg_catalog.regrole, 'o'
from given;

create schema if not exists supabase_functions;
grant usage on schema supabase_functions to postgres, anon, authenticated, service_role;
alter default privileges in schema supabase_functions grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges in schema supabase_functions grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges in schema supabase_functions grant all on sequences to postgres, anon, authenticated, service_role;

create table if not exists supabase_functions.migrations (
  version     text primary key,
  inserted_at timestamptz not null default now()
);
insert into supabase_functions.migrations (version) values ('initial'), ('20210809183423_update_grants')
on conflict do nothing;

-- A row for each request that a trigger has queued.
create table if not exists supabase_functions.hooks (
  id            bigserial primary key,
  hook_table_id integer not null,
  hook_name     text not null,
  created_at    timestamptz not null default now(),
  request_id    bigint
);
create index if not exists supabase_functions_hooks_request_id_idx on supabase_functions.hooks (request_id);
create index if not exists supabase_functions_hooks_h_table_id_h_name_idx
  on supabase_functions.hooks (hook_table_id, hook_name);

-- `create trigger … after insert … execute function supabase_functions.http_request(url, method, headers, params, timeout)`.
create or replace function supabase_functions.http_request() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- The text 'null' means an absent argument.
  url     constant text := nullif(tg_argv[0], 'null');
  method  constant text := nullif(tg_argv[1], 'null');
  headers constant jsonb := coalesce(nullif(tg_argv[2], 'null'), '{"Content-Type": "application/json"}')::jsonb;
  params  constant jsonb := coalesce(nullif(tg_argv[3], 'null'), '{}')::jsonb;
  timeout constant integer := coalesce(nullif(tg_argv[4], 'null'), '1000')::integer;
  request_id bigint;
begin
  if url is null then
    raise exception 'url argument is missing';
  end if;
  case method
    when 'GET' then
      request_id := net.http_get(url, params, headers, timeout);
    when 'POST' then
      request_id := net.http_post(
        url,
        pg_catalog.jsonb_build_object(
          'old_record', old, 'record', new, 'type', tg_op, 'table', tg_table_name, 'schema', tg_table_schema),
        params, headers, timeout);
    else
      if method is null then
        raise exception 'method argument is missing';
      end if;
      raise exception 'method argument % is invalid', method;
  end case;
  insert into supabase_functions.hooks (hook_table_id, hook_name, request_id) values (tg_relid, tg_name, request_id);
  return new;
end $$;

-- Triggers on `hooks` run with the function's rights, so it must not belong to a superuser.
grant usage on schema supabase_functions to supabase_functions_admin;
grant insert on supabase_functions.hooks to supabase_functions_admin;
grant usage on sequence supabase_functions.hooks_id_seq to supabase_functions_admin;
alter function supabase_functions.http_request() owner to supabase_functions_admin;

do $$
begin
  grant all on all tables in schema supabase_functions to postgres, anon, authenticated, service_role;
  grant all on all sequences in schema supabase_functions to postgres, anon, authenticated, service_role;
  grant execute on all functions in schema supabase_functions to postgres, anon, authenticated, service_role;
end $$;
