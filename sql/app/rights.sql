-- Nothing is open by default: every right is revoked here and granted again in its subject's rights.sql. Grants decide
-- who may use an object at all; policies decide about rows.

do $$
declare t record;
begin
  for t in select c.oid::regclass as name, c.relkind, n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('public', 'private') and c.relkind in ('r', 'v', 'S') and pg_get_userbyid(c.relowner) = current_user
  loop
    execute format('revoke all on %s %s from public, anon, authenticated, service_role', case when t.relkind = 'S' then 'sequence' else 'table' end, t.name);
    if t.nspname = 'public' and t.relkind <> 'S' then
      execute format('grant %s on table %s to service_role', case when t.relkind = 'r' then 'select, insert, update, delete' else 'select' end, t.name);
    end if;
  end loop;
  for t in select p.oid::regprocedure as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('public', 'private', 'functions') and pg_get_userbyid(p.proowner) = current_user and p.prokind = 'f'
  loop
    execute format('revoke all on function %s from public, anon, authenticated, service_role', t.name);
  end loop;
end $$;

revoke all on schema private from public;
grant usage on schema private, functions to anon, authenticated, service_role;
