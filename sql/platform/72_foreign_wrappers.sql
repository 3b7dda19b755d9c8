-- Foreign data wrappers of a project. PostgreSQL reserves making them for superusers, because a handler is compiled code; Supabase
-- allows it to its `postgres`. Here handler and validator must come from an extension of the platform's administrator. Before PostgreSQL 17
-- a function cannot keep the project's event triggers out, so there is no such function.
--
-- What a superuser reads through a foreign table is read with the superuser's rights at the other end, so the platform never reads a
-- project's tables as one. Everybody else needs a password there (`password_required`, which only superusers may change).
do $$
begin
  if current_user <> 'supabase_admin' or current_setting('server_version_num')::int < 170000 then
    return;
  end if;

  -- Replaces `create foreign data wrapper` in a project's migrations. `options` are names and values in turn.
  create or replace function ferrobase.create_foreign_data_wrapper(
    name text, handler regprocedure, validator regprocedure, options text[]) returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $create$
  declare
    wanted record;
    name_of text;
    called text[];
    list constant text := (
      select pg_catalog.string_agg(pg_catalog.format('%I %L', options[n], options[n + 1]), ', ' order by n)
      from pg_catalog.generate_series(1, pg_catalog.cardinality(options), 2) n);
  begin
    -- PostgreSQL finds them by name and these arguments, so another function of the name must not do.
    for wanted in
      select given.place, given.function, given.arguments, given.result
      from (values (1, handler, '', 'fdw_handler'::pg_catalog.regtype), (2, validator, 'text[], oid', null))
        as given (place, function, arguments, result)
      where given.function is not null
    loop
      -- Locked, so that no other session gives the name to another function meanwhile.
      select pg_catalog.format('%I.%I', n.nspname, p.proname) into name_of
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace
      join pg_catalog.pg_roles r on r.oid = p.proowner and r.rolsuper
      join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
      where p.oid = wanted.function and pg_catalog.oidvectortypes(p.proargtypes) = wanted.arguments
        and p.prorettype = coalesce(wanted.result, p.prorettype)
      for share of p, n;
      if name_of is null then
        raise exception 'function % belongs to no extension of the platform', wanted.function using errcode = '42501';
      end if;
      called[wanted.place] := name_of;
    end loop;
    -- The validator of `postgres_fdw` keeps `password_required` and files of the server from everybody but superusers.
    if exists (
      select from pg_catalog.pg_foreign_data_wrapper w
      where w.fdwhandler = handler and w.fdwvalidator <> 0 and w.fdwvalidator is distinct from validator
    ) then
      raise exception 'the foreign data wrapper % needs the validator that belongs to its handler', name using errcode = '42501';
    end if;
    execute pg_catalog.format('create foreign data wrapper %I %s %s %s', name,
      coalesce('handler ' || called[1], 'no handler'), coalesce('validator ' || called[2], 'no validator'),
      case when list is null then '' else 'options (' || list || ')' end);
    execute pg_catalog.format('grant usage on foreign data wrapper %I to %I with grant option', name, session_user);
  end $create$;

  -- Replaces `drop foreign data wrapper`.
  create or replace function ferrobase.drop_foreign_data_wrapper(name text, cascades boolean) returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $drop$
  begin
    -- Those of extensions are dropped with them: PostgreSQL says so.
    execute pg_catalog.format('drop foreign data wrapper %I %s', name, case when cascades then 'cascade' else 'restrict' end);
  end $drop$;

  -- An extension's wrapper belongs to the platform. The extension's owner may create servers with it, as on Supabase, where
  -- `postgres_fdw` is the project's.
  create or replace function _supavisor.grant_foreign_data_wrappers() returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $grant$
  declare
    wrapper record;
  begin
    for wrapper in
      select w.fdwname as name, pg_catalog.pg_get_userbyid(e.extowner) as owner
      from pg_catalog.pg_foreign_data_wrapper w
      join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_foreign_data_wrapper'::regclass and d.objid = w.oid
        and d.refclassid = 'pg_catalog.pg_extension'::regclass and d.deptype = 'e'
      join pg_catalog.pg_extension e on e.oid = d.refobjid
      where not pg_catalog.has_foreign_data_wrapper_privilege(e.extowner, w.oid, 'usage with grant option')
    loop
      execute pg_catalog.format('grant usage on foreign data wrapper %I to %I with grant option', wrapper.name, wrapper.owner);
    end loop;
  end $grant$;
  create or replace function _supavisor.grant_foreign_data_wrappers_of_extension() returns event_trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $trigger$
  begin
    perform _supavisor.grant_foreign_data_wrappers();
  end $trigger$;
  revoke execute on function _supavisor.grant_foreign_data_wrappers() from public;
  if not exists (
    select from pg_catalog.pg_event_trigger
    where evtname = 'grant_foreign_data_wrappers' and evtfoid = '_supavisor.grant_foreign_data_wrappers_of_extension()'::regprocedure
  ) then
    drop event trigger if exists grant_foreign_data_wrappers;
    create event trigger grant_foreign_data_wrappers on ddl_command_end when tag in ('CREATE EXTENSION')
      execute function _supavisor.grant_foreign_data_wrappers_of_extension();
  end if;
  -- Those of extensions that are older than this file.
  perform _supavisor.grant_foreign_data_wrappers();

  revoke execute on function ferrobase.create_foreign_data_wrapper(text, regprocedure, regprocedure, text[]),
    ferrobase.drop_foreign_data_wrapper(text, boolean) from public;
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant execute on function ferrobase.create_foreign_data_wrapper(text, regprocedure, regprocedure, text[]),
      ferrobase.drop_foreign_data_wrapper(text, boolean) to postgres;
  end if;
end $$;
