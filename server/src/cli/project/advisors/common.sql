-- What the rules look at. $1: schemas of the API; $2: schemas of the platform and of extensions.
with relation as (
  select c.oid, n.nspname::text as schema, c.relname::text as name, c.relkind::text as kind, c.relrowsecurity as has_rls,
         n.nspname = any ($1::text[]) and exists (
           select from pg_roles r where r.rolname in ('anon', 'authenticated') and has_table_privilege(r.oid, c.oid, 'select')
         ) as is_exposed,
         exists (
           select from unnest(c.reloptions) o
           where lower(o) in ('security_invoker=1', 'security_invoker=true', 'security_invoker=yes', 'security_invoker=on')
         ) as is_invoker
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname <> all ($2::text[])
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
), policy as (
  -- The platform's tables are among them.
  select n.nspname::text as schema, c.relname::text as name, c.relkind::text as kind, c.relrowsecurity as has_rls,
         p.polname::text as policy, p.polpermissive as is_permissive, p.polroles as role_oids,
         case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE' else 'ALL' end
           as command,
         pg_get_expr(p.polqual, p.polrelid) as qual, pg_get_expr(p.polwithcheck, p.polrelid) as with_check
  from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
)
