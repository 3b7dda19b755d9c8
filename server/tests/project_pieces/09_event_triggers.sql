create or replace function public.rls_auto_enable() returns event_trigger language plpgsql security definer set search_path = 'pg_catalog' as $$
declare cmd record; begin
  for cmd in select * from pg_event_trigger_ddl_commands() where command_tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') and object_type in ('table','partitioned table') loop
    if cmd.schema_name = 'public' then execute format('alter table if exists %s enable row level security', cmd.object_identity); end if;
  end loop; end; $$;
drop event trigger if exists ensure_rls;
create event trigger ensure_rls on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') execute function public.rls_auto_enable();
create table auto_rls (id int);
do $$ begin if not (select relrowsecurity from pg_class where oid = 'public.auto_rls'::regclass) then raise 'no rls'; end if; end $$;
create or replace function public.pgrst_watch() returns event_trigger language plpgsql as $$ begin notify pgrst, 'reload schema'; end $$;
create event trigger pgrst_watch on ddl_command_end execute procedure public.pgrst_watch();
