-- Tells the API to reload its schema cache after DDL. Event triggers need a superuser; without one, send
-- `notify pgrst, 'reload schema'` after a migration (`ferrobase migrate` does).

do $$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    return;
  end if;

  create or replace function extensions.pgrst_ddl_watch() returns event_trigger
  language plpgsql
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
