-- Run by supabase_admin, the first role of the cluster, in each database: what belongs to it and is the project's goes to
-- postgres. The platform's schemas, objects of extensions and what initdb made stay.
set local search_path = '';
set local client_min_messages = warning;
set local event_triggers = off;

do $$
declare
  item record;
begin
  if (select datdba from pg_catalog.pg_database where datname = pg_catalog.current_database()) = 10 then
    execute pg_catalog.format('alter database %I owner to postgres', pg_catalog.current_database());
  end if;

  for item in
    with spaces as (
      select oid, nspname from pg_catalog.pg_namespace
      where nspname !~ '^pg_' and nspname not in (
        'information_schema', 'auth', 'storage', 'realtime', '_realtime', '_supavisor', 'ferrobase', 'extensions', 'graphql',
        'graphql_public', 'vault', 'net', 'cron', 'pgmq', 'supabase_functions')
    ),
    owned as (
      select 'pg_catalog.pg_namespace'::pg_catalog.regclass as class, n.oid
      from pg_catalog.pg_namespace n join spaces s on s.oid = n.oid
      where n.nspowner = 10 and n.nspname not in ('functions', 'public')
      union all
      select 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid
      from pg_catalog.pg_class c join spaces s on s.oid = c.relnamespace
      where c.relowner = 10 and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      union all
      select 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid
      from pg_catalog.pg_type t join spaces s on s.oid = t.typnamespace
      left join pg_catalog.pg_class c on c.oid = t.typrelid
      where t.typowner = 10 and (t.typtype in ('b', 'd', 'e', 'r') or (t.typtype = 'c' and c.relkind = 'c'))
        and not exists (select from pg_catalog.pg_type element where element.typarray = t.oid)
      union all
      select 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid
      from pg_catalog.pg_proc p join spaces s on s.oid = p.pronamespace where p.proowner = 10
      union all
      select 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid
      from pg_catalog.pg_operator o join spaces s on s.oid = o.oprnamespace where o.oprowner = 10
      union all
      select 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid
      from pg_catalog.pg_opclass o join spaces s on s.oid = o.opcnamespace where o.opcowner = 10
      union all
      select 'pg_catalog.pg_opfamily'::pg_catalog.regclass, o.oid
      from pg_catalog.pg_opfamily o join spaces s on s.oid = o.opfnamespace where o.opfowner = 10
      union all
      select 'pg_catalog.pg_collation'::pg_catalog.regclass, c.oid
      from pg_catalog.pg_collation c join spaces s on s.oid = c.collnamespace where c.collowner = 10
      union all
      select 'pg_catalog.pg_conversion'::pg_catalog.regclass, c.oid
      from pg_catalog.pg_conversion c join spaces s on s.oid = c.connamespace where c.conowner = 10
      union all
      select 'pg_catalog.pg_ts_config'::pg_catalog.regclass, c.oid
      from pg_catalog.pg_ts_config c join spaces s on s.oid = c.cfgnamespace where c.cfgowner = 10
      union all
      select 'pg_catalog.pg_ts_dict'::pg_catalog.regclass, d.oid
      from pg_catalog.pg_ts_dict d join spaces s on s.oid = d.dictnamespace where d.dictowner = 10
      union all
      select 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, x.oid
      from pg_catalog.pg_statistic_ext x join spaces s on s.oid = x.stxnamespace where x.stxowner = 10
      union all
      select 'pg_catalog.pg_publication'::pg_catalog.regclass, p.oid
      from pg_catalog.pg_publication p where p.pubowner = 10 and not p.puballtables
      union all
      select 'pg_catalog.pg_foreign_server'::pg_catalog.regclass, f.oid
      from pg_catalog.pg_foreign_server f where f.srvowner = 10
    )
    select case named.type
             when 'statistics object' then 'statistics'
             when 'composite type' then 'type'
             else named.type
           end as kind, named.identity
    from owned, pg_catalog.pg_identify_object(owned.class, owned.oid, 0) as named
    where owned.oid >= 16384
      -- Members of an extension, sequences of a column, what a table or type brings along.
      and not exists (
        select from pg_catalog.pg_depend d
        where d.classid = owned.class and d.objid = owned.oid and d.deptype in ('e', 'i', 'a')
          and (d.deptype <> 'a' or d.refobjsubid > 0))
  loop
    execute pg_catalog.format('alter %s %s owner to postgres', item.kind, item.identity);
  end loop;
end $$;

-- Extensions that the project made are the project's to drop; there is no statement for that.
with given as (
  update pg_catalog.pg_extension set extowner = 'postgres'::pg_catalog.regrole
  where extowner = 10 and extname not in ('plpgsql', 'pgcrypto', 'uuid-ossp')
  returning oid
)
insert into pg_catalog.pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
select (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()),
       'pg_catalog.pg_extension'::pg_catalog.regclass, given.oid, 0,
       'pg_catalog.pg_authid'::pg_catalog.regclass, 'postgres'::pg_catalog.regrole, 'o'
from given;

-- What new objects of the project are granted, with every change that its migrations have made to it.
do $$
declare
  item record;
begin
  for item in
    select n.nspname, d.defaclobjtype,
           case d.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions'
                                when 'T' then 'types' when 'n' then 'schemas' end as kind,
           d.defaclacl
    from pg_catalog.pg_default_acl d left join pg_catalog.pg_namespace n on n.oid = d.defaclnamespace
    where d.defaclrole = 10 and d.defaclobjtype in ('r', 'S', 'f', 'T', 'n')
  loop
    if item.nspname is null then
      -- Without a schema the list replaces the built-in one, which then has to go first.
      execute pg_catalog.format('alter default privileges for role postgres revoke all on %s from public', item.kind);
    end if;
    declare
      granted record;
    begin
      for granted in
        select case when a.grantee = 0 then 'public'
                    when a.grantee = 10 then 'postgres'
                    else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) end as grantee,
               pg_catalog.string_agg(a.privilege_type, ', ') as privileges, a.is_grantable
        from pg_catalog.aclexplode(item.defaclacl) a
        group by a.grantee, a.is_grantable
      loop
        execute pg_catalog.format(
          'alter default privileges for role postgres %s grant %s on %s to %s%s',
          case when item.nspname is null then '' else pg_catalog.format('in schema %I', item.nspname) end,
          granted.privileges, item.kind, granted.grantee,
          case when granted.is_grantable then ' with grant option' else '' end);
      end loop;
    end;
  end loop;
end $$;

reassign owned by supabase_former_admin to supabase_admin;
drop owned by supabase_former_admin
