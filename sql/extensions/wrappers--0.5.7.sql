-- The handlers and validators of supabase/wrappers. Wrappers, servers and foreign tables can be made with them; only what reads or
-- writes such a table calls the handler, which refuses.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

do $$
declare
  wrapper text;
begin
  foreach wrapper in array array['airtable', 'auth0', 'big_query', 'click_house', 'cognito', 'duckdb', 'firebase', 'hello_world', 'iceberg',
                                 'logflare', 'mssql', 'redis', 's3', 's3_vectors', 'stripe', 'wasm'] loop
    -- No procedural language can return `fdw_handler`. This internal function raises 0A000.
    execute format('create function @extschema@.%I() returns fdw_handler language internal strict as ''fdw_handler_in''', wrapper || '_fdw_handler');
    execute format('comment on function @extschema@.%I() is ''Not served by Ferrobase: foreign tables of this wrapper cannot be read.''',
                   wrapper || '_fdw_handler');
    -- PL/pgSQL, because PostgreSQL refuses the null that a function in SQL returns.
    execute format('create function @extschema@.%I(options text[], catalog oid) returns void language plpgsql as $check$ begin end $check$',
                   wrapper || '_fdw_validator');
    execute format('create function @extschema@.%I() returns table(name text, version text, author text, website text) language sql immutable
                    as $meta$ select %L, ''not served by Ferrobase'', null, null $meta$', wrapper || '_fdw_meta', wrapper);
  end loop;
end $$;

create table @extschema@.wrappers_fdw_stats (
  fdw_name text primary key,
  create_times bigint,
  rows_in bigint,
  rows_out bigint,
  bytes_in bigint,
  bytes_out bigint,
  metadata jsonb,
  created_at timestamptz not null default timezone('utc'::text, now()),
  updated_at timestamptz not null default timezone('utc'::text, now())
);
