-- Roles as on Supabase. Roles belong to the whole cluster, so each is made only where it is missing, and one that
-- exists keeps its attributes. Those made here carry a comment by which the server knows that it may set their
-- passwords.
--
-- Without superuser rights some attributes cannot be given (BYPASSRLS, REPLICATION, SUPERUSER); the role is then made
-- without them and `ferrobase doctor` names what is missing.

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
    ['dashboard_user',             'nologin createdb createrole replication',          'nologin'],
    ['supabase_admin',             'login superuser createdb createrole replication bypassrls', 'nologin'],
    -- Ours: the server's own work in schema ferrobase (outbox, inbox) and nothing else.
    ['ferrobase_admin',            'login noinherit',                                  'login noinherit']
  ];
  role_name text;
begin
  for i in 1 .. array_length(wanted, 1) loop
    role_name := wanted[i][1];
    continue when exists (select from pg_catalog.pg_roles where rolname = role_name);
    begin
      execute format('create role %I %s', role_name, wanted[i][2]);
    exception when insufficient_privilege then
      execute format('create role %I %s', role_name, wanted[i][3]);
    end;
    execute format('comment on role %I is %L', role_name, 'Made by ferrobase');
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
      when 'supabase_admin' then
        alter role supabase_admin set search_path = "$user", public, auth, extensions;
      else
        null;
    end case;
  end loop;
end $$;

-- Who may become whom. The owner of the database becomes a member of all of them, as `postgres` is on Supabase, so
-- that migrations may write policies on storage.objects and references to auth.users.
do $$
declare
  grants constant text[][] := array[
    ['anon', 'authenticator'],
    ['authenticated', 'authenticator'],
    ['service_role', 'authenticator'],
    ['authenticator', 'supabase_storage_admin'],
    ['anon', current_user],
    ['authenticated', current_user],
    ['service_role', current_user],
    ['supabase_auth_admin', current_user],
    ['supabase_storage_admin', current_user],
    ['supabase_realtime_admin', current_user]
  ];
begin
  for i in 1 .. array_length(grants, 1) loop
    begin
      -- Membership is asked of the catalogue: pg_has_role is true for a superuser whatever was granted.
      if not exists (
        select from pg_catalog.pg_auth_members m
        where m.roleid = (select oid from pg_catalog.pg_roles where rolname = grants[i][1])
          and m.member = (select oid from pg_catalog.pg_roles where rolname = grants[i][2])
          and coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
      ) then
        execute format('grant %I to %I', grants[i][1], grants[i][2]);
      end if;
    exception when insufficient_privilege or invalid_grant_operation then
      raise warning 'role % could not be granted to %', grants[i][1], grants[i][2];
    end;
  end loop;
end $$;

do $$
begin
  -- Supabase's `postgres` finds extensions and public without naming them.
  if current_user = 'postgres' then
    alter role postgres set search_path = "$user", public, extensions;
  end if;
end $$;
