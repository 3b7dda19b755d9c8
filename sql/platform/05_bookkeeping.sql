-- Schema _supavisor: the server's own tables. The Supabase CLI leaves a schema of this name out of its dumps, differences and
-- resets, and here no pooler uses it; see docs/decisions/names-of-our-own.md.

create schema if not exists _supavisor;

-- Moves a table here from schema ferrobase, where earlier versions had it. An instance of such a version that is still connected goes
-- on with a view in its place, with the same rights; `migrate` drops it once none is.
create or replace function _supavisor.take_over(name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  item record;
begin
  if to_regclass(format('_supavisor.%I', name)) is not null
     or (select c.relkind from pg_class c where c.oid = to_regclass(format('ferrobase.%I', name))) is distinct from 'r' then
    return;
  end if;
  execute format('alter table ferrobase.%I set schema _supavisor', name);
  if not exists (
    select from pg_stat_activity a where a.datname = current_database() and a.usename = 'ferrobase_admin'
  ) then
    return;
  end if;
  execute format('create view ferrobase.%1$I as select * from _supavisor.%1$I', name);
  for item in
    select pg_get_userbyid(a.grantee) as grantee, string_agg(a.privilege_type, ', ') as privileges
    from pg_class c, aclexplode(c.relacl) a
    where c.oid = to_regclass(format('_supavisor.%I', name)) and a.grantee not in (0, c.relowner)
      and a.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    group by a.grantee
  loop
    execute format('grant %s on ferrobase.%I to %I', item.privileges, name, item.grantee);
  end loop;
end $$;
revoke execute on function _supavisor.take_over(text) from public;
