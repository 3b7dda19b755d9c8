-- Foreign data wrappers of a project. PostgreSQL reserves making them for superusers, because a handler is compiled code; Supabase
-- allows it to its `postgres`. Here handler and validator must come from an extension of the platform's administrator. Before PostgreSQL 17
-- a function cannot keep the project's event triggers out, so there is no such function.
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
    function regprocedure;
    list constant text := (
      select pg_catalog.string_agg(pg_catalog.format('%I %L', options[n], options[n + 1]), ', ' order by n)
      from pg_catalog.generate_series(1, pg_catalog.cardinality(options), 2) n);
  begin
    foreach function in array array[handler, validator] loop
      if function is not null and not exists (
        select from pg_catalog.pg_proc p
        join pg_catalog.pg_roles r on r.oid = p.proowner and r.rolsuper
        join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
        where p.oid = function
      ) then
        raise exception 'function % belongs to no extension of the platform', function using errcode = '42501';
      end if;
    end loop;
    execute pg_catalog.format('create foreign data wrapper %I %s %s %s', name,
      case when handler is null then 'no handler' else 'handler ' || handler::oid::regproc end,
      case when validator is null then 'no validator' else 'validator ' || validator::oid::regproc end,
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
  revoke execute on function ferrobase.create_foreign_data_wrapper(text, regprocedure, regprocedure, text[]),
    ferrobase.drop_foreign_data_wrapper(text, boolean) from public;
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant execute on function ferrobase.create_foreign_data_wrapper(text, regprocedure, regprocedure, text[]),
      ferrobase.drop_foreign_data_wrapper(text, boolean) to postgres;
  end if;
end $$;
