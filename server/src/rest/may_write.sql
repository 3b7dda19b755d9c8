-- Why a role ($3) can write nothing at all to a relation or call no function ($1: schema, $2: name), in PostgreSQL's words;
-- no row or null if it may. $4: INSERT, UPDATE or EXECUTE.
select case
    when not pg_catalog.has_schema_privilege($3::name, n.oid, 'USAGE') then
      'permission denied for schema ' || n.nspname
    when $4::text = 'EXECUTE' then (
      select 'permission denied for function ' || $2::text
      from pg_catalog.pg_proc p
      where p.pronamespace = n.oid and p.proname = $2::name
      having count(*) > 0 and not bool_or(pg_catalog.has_function_privilege($3::name, p.oid, 'EXECUTE')))
    else (
      select case
        when not pg_catalog.has_any_column_privilege($3::name, c.oid, $4::text) then
          'permission denied for ' || case c.relkind
            when 'v' then 'view ' when 'm' then 'materialized view ' when 'f' then 'foreign table ' else 'table '
          end || c.relname
        -- Row level security lets nothing in where no policy does. What triggers make of a row before that is theirs.
        when $4::text = 'INSERT' and c.relrowsecurity
          and not (select r.rolsuper or r.rolbypassrls from pg_catalog.pg_roles r where r.rolname = $3::name)
          and (c.relforcerowsecurity or not pg_catalog.pg_has_role($3::name, c.relowner, 'USAGE'))
          and not exists (
            select from pg_catalog.pg_policy p
            where p.polrelid = c.oid and p.polpermissive and p.polcmd in ('*', 'a')
              and (0::oid = any (p.polroles) or exists (
                select from unnest(p.polroles) as granted(role)
                where pg_catalog.pg_has_role($3::name, granted.role, 'USAGE'))))
          and not exists (
            select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal and t.tgtype & 4 = 4)
          then 'new row violates row-level security policy for table "' || c.relname || '"'
        end
      from pg_catalog.pg_class c
      where c.relnamespace = n.oid and c.relname = $2::name and c.relkind in ('r', 'p', 'v', 'm', 'f'))
  end
from pg_catalog.pg_namespace n
where n.nspname = $1::name
