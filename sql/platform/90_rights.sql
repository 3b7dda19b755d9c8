-- Repairs objects of earlier versions that a project could have run with superuser rights. The platform's files create
-- them correctly; objects of extensions and of a project's first start were never updated.
do $$
declare
  item record;
begin
  if current_user <> 'supabase_admin' then
    return;
  end if;

  -- A search path without pg_temp searches it first: a temporary type `text` would be found before PostgreSQL's.
  for item in
    select p.oid::regprocedure as function
    from pg_catalog.pg_proc p
    join pg_catalog.pg_roles r on r.oid = p.proowner
    where r.rolsuper and p.proconfig @> array['search_path=""']
  loop
    execute pg_catalog.format('alter function %s set search_path = pg_catalog, pg_temp', item.function);
  end loop;

  -- The webhook function writes to a table on which a project may put triggers.
  if (select r.rolsuper from pg_catalog.pg_proc p join pg_catalog.pg_roles r on r.oid = p.proowner
      where p.oid = pg_catalog.to_regprocedure('supabase_functions.http_request()')) then
    grant usage on schema supabase_functions to supabase_functions_admin;
    grant insert on supabase_functions.hooks to supabase_functions_admin;
    grant usage on sequence supabase_functions.hooks_id_seq to supabase_functions_admin;
    alter function supabase_functions.http_request() owner to supabase_functions_admin;
  end if;
end $$;

-- Functions of extensions that run as the superuser named the schema of pgcrypto or their own, which the project owns: it could put
-- other functions in place of pgcrypto's, and triggers on the list of hypertables. As in the scripts of today.
do $$
declare
  extension text;
  item record;
  step text;
begin
  if current_user <> 'supabase_admin' then
    return;
  end if;

  foreach extension in array array['vault', 'pgsodium'] loop
    continue when pg_catalog.to_regprocedure(
        case extension when 'vault' then 'vault._key()' else 'pgsodium._secret(uuid)' end) is null
      or pg_catalog.to_regprocedure(pg_catalog.format('%I._random_bytes(integer)', extension)) is not null;
    for item in
      select f.name, f.arguments, f.volatility, f.symbol
      from (values ('_pgp_sym_encrypt', 'bytea, text, text', 'volatile', 'pgp_sym_encrypt_bytea'),
                   ('_pgp_sym_decrypt', 'bytea, text', 'immutable', 'pgp_sym_decrypt_bytea'),
                   ('_hmac', 'text, text, text', 'immutable', 'pg_hmac'),
                   ('_random_bytes', 'integer', 'volatile', 'pg_random_bytes')) as f (name, arguments, volatility, symbol)
      where extension = 'pgsodium' or f.name <> '_hmac'
    loop
      execute pg_catalog.format('create function %I.%I(%s) returns bytea language c %s strict parallel safe as %L, %L',
        extension, item.name, item.arguments, item.volatility, '$libdir/pgcrypto', item.symbol);
      execute pg_catalog.format('revoke all on function %I.%I(%s) from public', extension, item.name, item.arguments);
      execute pg_catalog.format('alter extension %I add function %I.%I(%s)',
        case extension when 'vault' then 'supabase_vault' else extension end, extension, item.name, item.arguments);
    end loop;
    for item in
      select pg_catalog.pg_get_functiondef(p.oid) as text, p.oid::pg_catalog.regprocedure as function, p.prosecdef
      from pg_catalog.pg_proc p
      where p.pronamespace = extension::pg_catalog.regnamespace and p.proowner = 'supabase_admin'::pg_catalog.regrole
        and p.prosrc ~ '\.(pgp_sym_(en|de)crypt_bytea|hmac|gen_random_bytes)\('
    loop
      execute pg_catalog.regexp_replace(
        pg_catalog.regexp_replace(item.text, '[^\s(]+\.(pgp_sym_(en|de)crypt)_bytea\(', extension || '._\1(', 'g'),
        '[^\s(]+\.(?:gen)?_?(hmac|random_bytes)\(', extension || '._\1(', 'g');
      if not item.prosecdef and item.text ~ 'gen_random_bytes' then
        execute pg_catalog.format('alter function %s security definer', item.function);
      end if;
    end loop;
  end loop;

  for item in
    select n.nspname as schema, c.oid::pg_catalog.regclass as list
    from pg_catalog.pg_extension e
    join pg_catalog.pg_namespace n on n.oid = e.extnamespace
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = '_hypertables'
      and c.relowner = 'supabase_admin'::pg_catalog.regrole
    where e.extname = 'timescaledb'
  loop
    if pg_catalog.to_regnamespace('_timescaledb_catalog') is not null then
      -- The project's own: its role writes in the list itself.
      execute pg_catalog.format('alter function %I._remember_hypertable(regclass, name) security invoker', item.schema);
      raise warning 'the schema _timescaledb_catalog is in use already: only postgres can make hypertables';
      continue;
    end if;
    create schema _timescaledb_catalog;
    grant usage on schema _timescaledb_catalog to public;
    alter extension timescaledb add schema _timescaledb_catalog;
    execute pg_catalog.format('alter table %s set schema _timescaledb_catalog', item.list);
    for step in
      select pg_catalog.format('drop trigger %I on _timescaledb_catalog._hypertables', t.tgname) as statement
      from pg_catalog.pg_trigger t where t.tgrelid = item.list::pg_catalog.oid and not t.tgisinternal
      union all
      select pg_catalog.format('revoke all on _timescaledb_catalog._hypertables from %I cascade', r.rolname)
      from pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a join pg_catalog.pg_roles r on r.oid = a.grantee
      where c.oid = item.list::pg_catalog.oid and a.grantee <> c.relowner
      union all
      select pg_catalog.regexp_replace(pg_catalog.pg_get_functiondef(p.oid), '[^\s(]+\._hypertables\M', '_timescaledb_catalog._hypertables', 'g')
      from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      where n.nspname = item.schema and p.proname in ('_remember_hypertable', 'create_hypertable')
        and p.proowner = 'supabase_admin'::pg_catalog.regrole
    loop
      execute step;
    end loop;
  end loop;
end $$;

-- The vault of earlier versions belonged to the superuser, so nothing could refer to it; see `supabase_vault`'s script.
do $$
begin
  if current_user = 'supabase_admin'
     and (select relowner = 'supabase_admin'::regrole from pg_catalog.pg_class where oid = pg_catalog.to_regclass('vault.secrets'))
     and pg_catalog.to_regprocedure('vault._key()') is not null then
    grant usage on schema vault to supabase_vault_admin;
    alter table vault.secrets owner to supabase_vault_admin;
    if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
      grant usage on schema vault to postgres with grant option;
      grant select, insert, update, delete, truncate, references on vault.secrets to postgres with grant option;
      grant select, delete on vault.decrypted_secrets to postgres with grant option;
    end if;
  end if;
end $$;

-- Objects of our own extensions, used by the server as supabase_ferrobase_admin.
do $$
declare
  item record;
begin
  if current_user <> 'supabase_admin' then
    return;
  end if;

  if exists (
    select from pg_catalog.pg_extension e
    join pg_catalog.pg_depend d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e'
    where e.extname = 'pg_net' and d.classid = 'pg_class'::regclass
      and d.objid = pg_catalog.to_regclass('net._http_response')
  ) then
    revoke trigger, references, maintain on net.http_request_queue, net._http_response from public;
  end if;

  if not exists (
    select from pg_catalog.pg_extension e
    join pg_catalog.pg_depend d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e'
    where e.extname = 'pg_cron' and d.classid = 'pg_proc'::regclass
      and d.objid = pg_catalog.to_regprocedure('cron._tell()')
  ) then
    return;
  end if;
  grant usage on schema cron to supabase_ferrobase_admin;
  grant select on cron.job to supabase_ferrobase_admin;
  grant select, insert, update on cron.job_run_details to supabase_ferrobase_admin;
  grant usage on sequence cron.runid_seq to supabase_ferrobase_admin;
  if not exists (select from pg_catalog.pg_policy where polname = 'ferrobase_reads_jobs') then
    create policy ferrobase_reads_jobs on cron.job for select to supabase_ferrobase_admin using (true);
  end if;
  if not exists (select from pg_catalog.pg_policy where polname = 'ferrobase_records_runs') then
    create policy ferrobase_records_runs on cron.job_run_details to supabase_ferrobase_admin using (true);
  end if;
  -- Of another role in databases of earlier versions.
  alter policy ferrobase_reads_jobs on cron.job to supabase_ferrobase_admin;
  alter policy ferrobase_records_runs on cron.job_run_details to supabase_ferrobase_admin;
  -- A job belongs to the effective role of the call, not to the login role.
  grant select, insert, update, delete on cron.job to postgres with grant option;
  for item in
    select pg_catalog.pg_get_functiondef(p.oid) as text
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'cron' and p.prosecdef and p.prosrc like '%session_user%'
      and exists (
        select from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
        where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
          and d.refclassid = 'pg_extension'::regclass and e.extname = 'pg_cron')
  loop
    execute pg_catalog.replace(pg_catalog.replace(item.text, 'session_user', 'current_user'), ' SECURITY DEFINER', '');
  end loop;
end $$;

-- Objects that 0.1.0 made before 10_schemas.sql set default privileges for their makers: `postgres` was the superuser then and
-- needed none. What it had granted to itself became the superuser's when it was renamed, and is the project's.
do $$
declare
  item record;
begin
  if current_user <> 'supabase_admin' or not exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    return;
  end if;
  for item in
    with made as (
      select c.relnamespace as schema, c.relowner as owner, c.relacl as rights,
             case c.relkind when 'S' then 'sequence' else 'table' end as kind, c.oid::regclass::text as name
      from pg_catalog.pg_class c where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      union all
      select p.pronamespace, p.proowner, p.proacl, 'routine', p.oid::regprocedure::text from pg_catalog.pg_proc p
    ),
    -- A superuser grants as the owner, so nobody has a right from it that would go as well.
    superusers as (
      select made.kind, made.name, coalesce(string_agg(a.privilege_type, ', ') filter (where a.is_grantable), '') as grantable
      from made, pg_catalog.aclexplode(made.rights) a
      where a.grantee = 'supabase_admin'::regrole
        and not exists (select from pg_catalog.aclexplode(made.rights) b where b.grantor = 'supabase_admin'::regrole)
      group by made.kind, made.name
    )
    select made.kind, made.name, superusers.grantable,
           not exists (select from pg_catalog.aclexplode(made.rights) a
                       where a.grantee = 'dashboard_user'::regrole) as is_older
    from made
    join (values ('auth', 'supabase_auth_admin'), ('realtime', 'supabase_realtime_admin')) as service (schema, maker)
      on made.schema = service.schema::regnamespace and made.owner = service.maker::regrole
    left join superusers on superusers.kind = made.kind and superusers.name = made.name
  loop
    if item.is_older then
      execute pg_catalog.format('grant all on %s %s to postgres, dashboard_user', item.kind, item.name);
    end if;
    if item.grantable <> '' then
      execute pg_catalog.format('grant %s on %s %s to postgres with grant option', item.grantable, item.kind, item.name);
    end if;
    if item.grantable is not null then
      execute pg_catalog.format('revoke all on %s %s from supabase_admin', item.kind, item.name);
    end if;
  end loop;

  if exists (
    select from pg_catalog.pg_proc p
    where p.oid = pg_catalog.to_regprocedure('graphql_public.graphql(text, text, jsonb, jsonb)') and p.proowner = 'supabase_admin'::regrole
      and not exists (select from pg_catalog.aclexplode(p.proacl) a where a.grantee = 'service_role'::regrole)
  ) then
    grant all on function graphql_public.graphql(text, text, jsonb, jsonb) to postgres, anon, authenticated, service_role;
  end if;
end $$;
