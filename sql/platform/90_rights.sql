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

-- Objects of our own extensions, used by the server as ferrobase_admin.
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
  grant usage on schema cron to ferrobase_admin;
  grant select on cron.job to ferrobase_admin;
  grant select, insert, update on cron.job_run_details to ferrobase_admin;
  grant usage on sequence cron.runid_seq to ferrobase_admin;
  if not exists (select from pg_catalog.pg_policy where polname = 'ferrobase_reads_jobs') then
    create policy ferrobase_reads_jobs on cron.job for select to ferrobase_admin using (true);
  end if;
  if not exists (select from pg_catalog.pg_policy where polname = 'ferrobase_records_runs') then
    create policy ferrobase_records_runs on cron.job_run_details to ferrobase_admin using (true);
  end if;
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
