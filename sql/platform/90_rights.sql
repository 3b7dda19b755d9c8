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
