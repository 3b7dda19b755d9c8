-- Tells the API to reload its schema cache after DDL. Event triggers need a superuser; without one, send
-- `notify pgrst, 'reload schema'` after a migration (`ferrobase migrate` does).

do $$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    return;
  end if;

  create or replace function extensions.pgrst_ddl_watch() returns event_trigger
  language plpgsql
  set search_path = pg_catalog, pg_temp
  as $watch$
  begin
    if exists (
      select from pg_catalog.pg_event_trigger_ddl_commands() as command
      where command.schema_name is distinct from 'pg_temp'
        and command.command_tag in (
          'CREATE SCHEMA', 'ALTER SCHEMA',
          'CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE',
          'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE',
          'CREATE VIEW', 'ALTER VIEW',
          'CREATE MATERIALIZED VIEW', 'ALTER MATERIALIZED VIEW',
          'CREATE FUNCTION', 'ALTER FUNCTION', 'CREATE PROCEDURE', 'ALTER PROCEDURE',
          'CREATE TRIGGER', 'CREATE TYPE', 'ALTER TYPE', 'CREATE DOMAIN', 'ALTER DOMAIN',
          'CREATE RULE', 'COMMENT', 'GRANT', 'REVOKE'
        )
    ) then
      notify pgrst, 'reload schema';
    end if;
  end $watch$;

  create or replace function extensions.pgrst_drop_watch() returns event_trigger
  language plpgsql
  set search_path = pg_catalog, pg_temp
  as $watch$
  begin
    if exists (
      select from pg_catalog.pg_event_trigger_dropped_objects() as dropped
      where not dropped.is_temporary
        and dropped.object_type in (
          'schema', 'table', 'foreign table', 'view', 'materialized view', 'function', 'procedure', 'trigger', 'type',
          'domain', 'rule', 'table constraint'
        )
    ) then
      notify pgrst, 'reload schema';
    end if;
  end $watch$;

  if not exists (select from pg_catalog.pg_event_trigger where evtname = 'pgrst_ddl_watch') then
    create event trigger pgrst_ddl_watch on ddl_command_end execute function extensions.pgrst_ddl_watch();
  end if;
  if not exists (select from pg_catalog.pg_event_trigger where evtname = 'pgrst_drop_watch') then
    create event trigger pgrst_drop_watch on sql_drop execute function extensions.pgrst_drop_watch();
  end if;
end $$;

-- Migrations often drop the publication of realtime and make it anew; see `10_schemas.sql`.
do $$
begin
  if current_user <> 'supabase_admin' or current_setting('server_version_num')::int < 180000 then
    return;
  end if;
  create or replace function _supavisor.publish_generated_columns() returns event_trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $publish$
  begin
    if exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime' and pubgencols = 'n') then
      alter publication supabase_realtime set (publish_generated_columns = stored);
    end if;
  end $publish$;
  if not exists (
    select from pg_catalog.pg_event_trigger
    where evtname = 'publish_generated_columns' and evtfoid = '_supavisor.publish_generated_columns()'::regprocedure
  ) then
    drop event trigger if exists publish_generated_columns;
    create event trigger publish_generated_columns on ddl_command_end when tag in ('CREATE PUBLICATION')
      execute function _supavisor.publish_generated_columns();
    drop function if exists ferrobase.publish_generated_columns();
  end if;
end $$;

-- Event triggers of a project. PostgreSQL reserves them for superusers because their functions run in everybody's
-- sessions, but Supabase allows them to its `postgres`. Here their functions always run with their owner's rights, so
-- that an extension's script or an administrator's statement cannot give superuser rights.
do $$
begin
  if current_user <> 'supabase_admin' or current_setting('server_version_num')::int < 170000 then
    return;
  end if;

  -- In a schema that the project does not own, because dropping the function would drop the guard.
  create or replace function _supavisor.guard_event_triggers() returns event_trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $guard$
  declare
    function regprocedure;
  begin
    -- It runs after every command. Of a join, PostgreSQL would make a scan of all functions, so each is looked up by its id.
    for function in
      select t.evtfoid from pg_catalog.pg_event_trigger t
      where (select not p.prosecdef and not (select a.rolsuper from pg_catalog.pg_authid a where a.oid = p.proowner)
             from pg_catalog.pg_proc p where p.oid = t.evtfoid)
    loop
      execute pg_catalog.format('alter function %s security definer', function);
    end loop;
  end $guard$;
  -- After every command, because a routine can be altered in several ways, and regardless of session_replication_role.
  if not exists (
    select from pg_catalog.pg_event_trigger
    where evtname = 'guard_event_triggers' and evtenabled = 'A' and evttags is null
      and evtfoid = '_supavisor.guard_event_triggers()'::regprocedure
  ) then
    drop event trigger if exists guard_event_triggers;
    create event trigger guard_event_triggers on ddl_command_end execute function _supavisor.guard_event_triggers();
    alter event trigger guard_event_triggers enable always;
    drop function if exists extensions.guard_event_triggers();
    drop function if exists ferrobase.guard_event_triggers();
    -- Repairs what bypassed the guard of earlier versions.
    declare
      function regprocedure;
    begin
      for function in
        select p.oid from pg_catalog.pg_event_trigger t
        join pg_catalog.pg_proc p on p.oid = t.evtfoid
        join pg_catalog.pg_roles r on r.oid = p.proowner
        where not r.rolsuper and not p.prosecdef
      loop
        execute pg_catalog.format('alter function %s security definer', function);
      end loop;
    end;
  end if;

  -- Replaces `create event trigger` in a project's migrations. The function must belong to the caller.
  create or replace function ferrobase.create_event_trigger(name text, event text, tags text[], function regprocedure)
  returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $create$
  declare
    found record;
  begin
    select pg_catalog.pg_get_userbyid(p.proowner) as owner, p.pronargs, p.prorettype, n.nspname as schema, p.proname as name into found
    from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace where p.oid = function;
    if (select rolsuper from pg_catalog.pg_roles where rolname = found.owner)
       or not pg_catalog.pg_has_role(session_user, found.owner, 'usage') then
      raise exception 'must be owner of function %', function using errcode = '42501';
    end if;
    if found.pronargs <> 0 or found.prorettype <> 'pg_catalog.event_trigger'::pg_catalog.regtype then
      raise exception 'function % must take no arguments and return type event_trigger', function using errcode = '42P17';
    end if;
    if event not in ('ddl_command_start', 'ddl_command_end', 'sql_drop', 'table_rewrite') then
      raise exception 'unrecognized event name "%"', event using errcode = '42601';
    end if;
    execute pg_catalog.format('alter function %s security definer', function);
    execute pg_catalog.format('create event trigger %I on %s %s execute function %I.%I()', name, event,
      case when tags is null then ''
           else pg_catalog.format('when tag in (%s)', (select string_agg(quote_literal(tag), ', ') from unnest(tags) tag)) end,
      found.schema, found.name);
    -- Another session may have put a function in its place.
    if not exists (
      select from pg_catalog.pg_event_trigger t join pg_catalog.pg_proc p on p.oid = t.evtfoid
      where t.evtname = create_event_trigger.name and t.evtfoid = function and p.prosecdef
        and pg_catalog.pg_get_userbyid(p.proowner) = found.owner
    ) then
      raise exception 'function % was changed meanwhile', function using errcode = '40001';
    end if;
  end $create$;

  -- Replaces `drop event trigger` and `alter event trigger … enable|disable|rename to`.
  create or replace function ferrobase.change_event_trigger(name text, change text, new_name text default null)
  returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $change$
  declare
    function_owner constant name := (
      select pg_catalog.pg_get_userbyid(p.proowner) from pg_catalog.pg_event_trigger t
      join pg_catalog.pg_proc p on p.oid = t.evtfoid where t.evtname = change_event_trigger.name);
  begin
    if function_owner is null then
      raise exception 'event trigger "%" does not exist', name using errcode = '42704';
    end if;
    if (select rolsuper from pg_catalog.pg_roles where rolname = function_owner)
       or not pg_catalog.pg_has_role(session_user, function_owner, 'usage') then
      raise exception 'must be owner of event trigger %', name using errcode = '42501';
    end if;
    case change
      when 'drop' then execute pg_catalog.format('drop event trigger %I', name);
      when 'disable' then execute pg_catalog.format('alter event trigger %I disable', name);
      when 'enable' then execute pg_catalog.format('alter event trigger %I enable', name);
      when 'enable replica' then execute pg_catalog.format('alter event trigger %I enable replica', name);
      when 'enable always' then execute pg_catalog.format('alter event trigger %I enable always', name);
      when 'rename' then execute pg_catalog.format('alter event trigger %I rename to %I', name, new_name);
    end case;
  end $change$;
  revoke execute on function ferrobase.create_event_trigger(text, text, text[], regprocedure),
    ferrobase.change_event_trigger(text, text, text) from public;
  grant execute on function ferrobase.create_event_trigger(text, text, text[], regprocedure),
    ferrobase.change_event_trigger(text, text, text) to postgres;
end $$;
