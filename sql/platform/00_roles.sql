-- Roles as on Supabase. Roles belong to the whole cluster, so only missing ones are created, and existing ones
-- keep their attributes. A comment marks roles created here, whose passwords the server may set.
--
-- The platform is set up by a superuser (`supabase_admin` in the embedded PostgreSQL), and a project's migrations
-- run as `postgres`, which is not one. Elsewhere one role, the database's owner, may have to do both. Without
-- superuser rights some attributes cannot be granted (BYPASSRLS, REPLICATION, SUPERUSER); roles are then created
-- without them, and `ferrobase doctor` reports what is missing.

do $$
declare
  wanted constant text[][] := array[
    -- name, attributes, attributes without superuser rights
    ['anon',                       'nologin inherit',                                  'nologin inherit'],
    ['authenticated',              'nologin inherit',                                  'nologin inherit'],
    ['service_role',               'nologin inherit bypassrls',                        'nologin inherit'],
    ['authenticator',              'login noinherit',                                  'login noinherit'],
    ['supabase_auth_admin',        'login noinherit createrole',                       'login noinherit'],
    ['supabase_storage_admin',     'login noinherit createrole',                       'login noinherit'],
    ['supabase_realtime_admin',    'nologin noinherit',                                'nologin noinherit'],
    ['supabase_functions_admin',   'login noinherit createrole',                       'login noinherit'],
    ['supabase_replication_admin', 'login replication',                                'login'],
    ['supabase_read_only_user',    'login bypassrls',                                  'login'],
    ['supabase_etl_admin',         'login replication',                                'login'],
    -- Owns the table of the vault's secrets, so that keys to it check nothing with a superuser's rights.
    ['supabase_vault_admin',       'nologin noinherit',                                'nologin noinherit'],
    ['pgbouncer',                  'login',                                            'login'],
    ['dashboard_user',             'nologin createdb createrole replication',          'nologin'],
    ['supabase_admin',             'login superuser createdb createrole replication bypassrls', 'nologin'],
    -- Ours: only for the server's own work in schema _supavisor (outbox, inbox). Tools take names like this for the platform's.
    ['supabase_ferrobase_admin',   'login noinherit',                                  'login noinherit']
  ];
  role_name text;
begin
  for i in 1 .. array_length(wanted, 1) loop
    role_name := wanted[i][1];
    continue when exists (select from pg_catalog.pg_roles where rolname = role_name);
    begin
      execute pg_catalog.format('create role %I %s', role_name, wanted[i][2]);
    exception when insufficient_privilege then
      execute pg_catalog.format('create role %I %s', role_name, wanted[i][3]);
    end;
    execute pg_catalog.format('comment on role %I is %L', role_name, 'Made by ferrobase');
    case role_name
      when 'anon' then
        alter role anon set statement_timeout = '3s';
      when 'authenticated' then
        alter role authenticated set statement_timeout = '8s';
      when 'authenticator' then
        alter role authenticator set statement_timeout = '8s';
        alter role authenticator set lock_timeout = '8s';
      when 'supabase_auth_admin' then
        alter role supabase_auth_admin set search_path = auth;
        alter role supabase_auth_admin set idle_in_transaction_session_timeout = '60s';
      when 'supabase_storage_admin' then
        alter role supabase_storage_admin set search_path = storage;
      when 'supabase_functions_admin' then
        alter role supabase_functions_admin set search_path = supabase_functions;
      else
        null;
    end case;
  end loop;
end $$;

-- Earlier versions called the last of them ferrobase_admin. Instances of such a version that still run have the rights of the new one by
-- membership; `migrate` drops the old role once none does.
do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'ferrobase_admin') then
    alter role ferrobase_admin inherit;
    grant supabase_ferrobase_admin to ferrobase_admin;
  end if;
exception when insufficient_privilege or invalid_grant_operation then
  raise warning 'role ferrobase_admin could not be given the rights of supabase_ferrobase_admin';
end $$;

-- Role memberships. The role that runs a project's migrations becomes a member of all of them, so that migrations may
-- create policies on storage.objects, triggers on auth.users and settings of the authenticator.
do $$
declare
  -- 'postgres' in the embedded PostgreSQL, else the role that sets up the platform.
  owner constant name := case
    when current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres')
    then 'postgres' else current_user end;
  grants constant text[][] := array[
    ['anon', 'authenticator', ''],
    ['authenticated', 'authenticator', ''],
    ['service_role', 'authenticator', ''],
    ['authenticator', 'supabase_storage_admin', ''],
    ['pg_read_all_data', 'supabase_read_only_user', ''],
    ['pg_read_all_data', 'supabase_etl_admin', ''],
    ['anon', owner, 'admin'],
    ['authenticated', owner, 'admin'],
    ['service_role', owner, 'admin'],
    ['authenticator', owner, 'admin'],
    ['supabase_auth_admin', owner, ''],
    ['supabase_storage_admin', owner, ''],
    ['supabase_realtime_admin', owner, ''],
    ['supabase_functions_admin', owner, ''],
    ['pg_monitor', owner, 'admin'],
    ['pg_read_all_data', owner, 'admin'],
    ['pg_signal_backend', owner, 'admin'],
    ['pg_create_subscription', owner, 'admin'],
    -- Owns the platform's schemas. In the embedded PostgreSQL it also runs this.
    ['supabase_admin', current_user, '']
  ];
  lacks boolean;
begin
  for i in 1 .. array_length(grants, 1) loop
    continue when grants[i][1] = grants[i][2]
      or not exists (select from pg_catalog.pg_roles where rolname = grants[i][1]);
    -- A project's role never becomes a superuser.
    continue when grants[i][1] = 'supabase_admin'
      and (select rolsuper from pg_catalog.pg_roles where rolname = 'supabase_admin');
    begin
      -- Checks memberships in the catalog, because pg_has_role is always true for superusers.
      select not exists (
        select from pg_catalog.pg_auth_members m
        where m.roleid = (select oid from pg_catalog.pg_roles where rolname = grants[i][1])
          and m.member = (select oid from pg_catalog.pg_roles where rolname = grants[i][2])
          and coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
          and (m.admin_option or grants[i][3] = '')
      ) into lacks;
      if lacks then
        execute pg_catalog.format('grant %I to %I %s', grants[i][1], grants[i][2],
                       case grants[i][3] when 'admin' then 'with admin option' else '' end);
      end if;
    exception when insufficient_privilege or invalid_grant_operation then
      begin
        execute pg_catalog.format('grant %I to %I', grants[i][1], grants[i][2]);
      exception when insufficient_privilege or invalid_grant_operation then
        if grants[i][1] !~ '^pg_' and grants[i][1] <> 'supabase_admin' then
          raise warning 'role % could not be granted to %', grants[i][1], grants[i][2];
        end if;
      end;
    end;
  end loop;

  -- Settings that Supabase's `postgres` may change although it is not a superuser.
  if owner <> current_user then
    declare
      parameter text;
    begin
      foreach parameter in array array[
        'session_replication_role', 'log_statement', 'log_min_duration_statement', 'log_min_messages', 'log_lock_waits',
        'log_parameter_max_length', 'log_replication_commands', 'log_temp_files', 'track_functions', 'track_io_timing',
        'wal_compression', 'pg_stat_statements.track', 'pg_stat_statements.max', 'pg_stat_statements.track_utility',
        'auto_explain.log_analyze', 'auto_explain.log_min_duration', 'auto_explain.log_nested_statements',
        'pgaudit.log', 'pgaudit.log_catalog', 'pgaudit.log_client', 'pgaudit.log_level', 'pgaudit.log_parameter',
        'pgaudit.log_relation', 'pgaudit.log_rows', 'pgaudit.log_statement', 'pgaudit.log_statement_once', 'pgaudit.role',
        'plan_filter.limit_filter', 'plan_filter.module_loaded', 'plan_filter.statement_cost_limit',
        'pgrst.db_schemas', 'pgrst.db_extra_search_path', 'pgrst.db_max_rows', 'pgrst.db_pre_request',
        'pgrst.db_anon_role', 'pgrst.db_aggregates_enabled', 'pgrst.db_plan_enabled', 'pgrst.db_root_spec',
        'pgrst.db_tx_end', 'pgrst.db_pre_config', 'pgrst.db_prepared_statements', 'pgrst.db_hoisted_tx_settings',
        'pgrst.jwt_secret', 'pgrst.jwt_aud', 'pgrst.jwt_role_claim_key', 'pgrst.jwt_secret_is_base64',
        'pgrst.openapi_mode', 'pgrst.openapi_security_active', 'pgrst.openapi_server_proxy_uri',
        'pgrst.server_cors_allowed_origins', 'pgrst.server_timing_enabled', 'pgrst.server_trace_header',
        'pgrst.log_level', 'pgrst.log_query', 'pgrst.raw_media_types', 'pgrst.client_error_verbosity',
        'pgrst.db_timezone_enabled', 'pgrst.db_pool',
        'app.settings.jwt_secret', 'app.settings.jwt_exp', 'pg_net.ttl', 'pg_net.batch_size', 'safeupdate.enabled'
      ] loop
        execute pg_catalog.format('grant set on parameter %I to %I', parameter, owner);
      end loop;
    exception when undefined_object or invalid_parameter_value or syntax_error then
      raise warning 'the right to set % could not be granted', parameter;
    end;
  end if;
end $$;

do $$
begin
  -- Supabase's `postgres` finds extensions and public without naming them.
  if current_user = 'postgres' then
    alter role postgres set search_path = "$user", public, extensions;
  end if;
  if current_user = 'supabase_admin' then
    alter role supabase_admin set search_path = "$user", public, auth, extensions;
  end if;
end $$;
