-- Extensions that every Supabase project has, if the embedded PostgreSQL has them, and Supabase's grants for new ones.
-- An extension created by a project belongs to it; its objects belong to the platform.
do $$
begin
  if current_user <> 'supabase_admin' then
    return;
  end if;
  begin
    create extension if not exists supabase_vault;
  exception when undefined_file or feature_not_supported or insufficient_privilege then
    raise warning 'extension supabase_vault is not available here';
  end;
  -- Version 1.6 of our `http` refused every request; 1.7 ran what a project put in the place of its functions as the superuser.
  if exists (select from pg_catalog.pg_extension where extname = 'http' and extversion in ('1.6', '1.7')
                    and pg_catalog.obj_description(oid, 'pg_extension') like '%Ferrobase%')
     and exists (select from pg_catalog.pg_available_extensions where name = 'http' and comment like '%Ferrobase%') then
    alter extension http update;
    comment on extension http is 'HTTP client: Ferrobase makes the requests while the statement waits';
  end if;
  -- A project may drop them, as on Supabase; `db pull` writes that into migrations.
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    with given as (
      update pg_catalog.pg_extension set extowner = 'postgres'::pg_catalog.regrole
      where extname in ('pg_net', 'pg_stat_statements', 'pgcrypto', 'supabase_vault', 'uuid-ossp') and extowner = 'supabase_admin'::pg_catalog.regrole
      returning oid
    )
    insert into pg_catalog.pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
    select (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()),
           'pg_catalog.pg_extension'::pg_catalog.regclass, given.oid, 0,
           'pg_catalog.pg_authid'::pg_catalog.regclass, 'postgres'::pg_catalog.regrole, 'o'
    from given;
  end if;
end $$;
