-- Makes our functions and views for projects, their schema and the schema `functions` members of the extension plpgsql: `pg_dump` and
-- tools that compare databases leave members of an extension out, and plpgsql is in every database, so no dump names it. A project's
-- own functions in schema `functions` are none. Only the superuser of the embedded PostgreSQL may do so. Run at every start.
do $$
declare
  item record;
  granted record;
  grants text[] := '{}';
  statement text;
begin
  if current_user <> 'supabase_admin'
     or not (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user)
     or pg_catalog.to_regrole('postgres') is null then
    return;
  end if;

  for item in
    with wanted as (
      select 'pg_catalog.pg_namespace'::pg_catalog.regclass as class, n.oid, n.nspacl as rights, n.nspname as schema
      from pg_catalog.pg_namespace n where n.nspname in ('ferrobase', 'functions')
      union all
      select 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, p.proacl, null
      from pg_catalog.pg_proc p where p.pronamespace = pg_catalog.to_regnamespace('ferrobase')
      union all
      select 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, c.relacl, null
      from pg_catalog.pg_class c where c.relnamespace = pg_catalog.to_regnamespace('ferrobase') and c.relkind = 'v'
    )
    select named.type, named.identity, wanted.schema, wanted.rights, member.objid is not null as is_member
    from wanted
    cross join pg_catalog.pg_identify_object(wanted.class, wanted.oid, 0) as named
    left join pg_catalog.pg_depend member on member.classid = wanted.class and member.objid = wanted.oid and member.deptype = 'e'
    left join pg_catalog.pg_init_privs first on first.classoid = wanted.class and first.objoid = wanted.oid and first.objsubid = 0
    -- A dump names rights that were changed since the object became a member. In `functions` these are the project's.
    where member.objid is null or (first.initprivs::text is distinct from wanted.rights::text and wanted.schema is distinct from 'functions')
  loop
    if item.is_member then
      execute pg_catalog.format('alter extension plpgsql drop %s %s', item.type, item.identity);
    end if;
    if item.schema = 'functions' then
      for granted in
        select pg_catalog.pg_get_userbyid(a.grantee) as grantee, pg_catalog.pg_get_userbyid(a.grantor) as grantor,
               a.privilege_type, a.is_grantable
        from pg_catalog.aclexplode(item.rights) a
        join pg_catalog.pg_roles r on r.oid = a.grantee
        where r.rolname not in ('postgres', 'supabase_admin')
          and pg_catalog.shobj_description(r.oid, 'pg_authid') is distinct from 'Made by ferrobase'
      loop
        begin
          execute pg_catalog.format('set local role %I; revoke all on schema functions from %I; reset role', granted.grantor, granted.grantee);
          grants := grants || pg_catalog.format('set local role %I; grant %s on schema functions to %I%s; reset role',
            granted.grantor, granted.privilege_type, granted.grantee, case when granted.is_grantable then ' with grant option' else '' end);
        exception when dependent_objects_still_exist then
          null; -- passed on to others: counted with the platform's
        end;
      end loop;
    end if;
    execute pg_catalog.format('alter extension plpgsql add %s %s', item.type, item.identity);
  end loop;
  foreach statement in array grants loop
    execute statement;
  end loop;
end $$
