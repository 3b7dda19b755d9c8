-- Statements that recreate the roles of a database, without passwords, which the server sets itself; and what a dump leaves out because
-- it belongs to plpgsql (`migrate/members.sql`), as far as a project's own objects may need it. The platform's first run repairs it.
with ours as (
    select r.oid, rolname, rolsuper, rolcanlogin, rolinherit, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication,
           -- Superusers and the owner are there only to own things: the archive gives nobody their rights.
           rolsuper or rolname = current_user as is_bare
    from pg_catalog.pg_roles r
    where not starts_with(rolname, 'pg_')
      and (not rolsuper or rolname = current_user
           -- The cluster's first role, whose objects are not listed as such.
           or r.oid = 10
           or exists (select from pg_catalog.pg_shdepend d
                      where d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass and d.refobjid = r.oid
                        and d.dbid = (select oid from pg_catalog.pg_database where datname = current_database())))
), memberships as (
    -- Several roles may have granted the same.
    select granted.rolname as granted, member.rolname as member, bool_or(m.admin_option) as is_admin,
           bool_or((to_jsonb(m) ->> 'inherit_option')::boolean) as inherits, bool_or((to_jsonb(m) ->> 'set_option')::boolean) as may_set
    from pg_catalog.pg_auth_members m
    join pg_catalog.pg_roles granted on granted.oid = m.roleid and not granted.rolsuper
    join ours member on member.oid = m.member
    where granted.oid in (select oid from ours) or starts_with(granted.rolname, 'pg_')
    group by 1, 2
), lines as (
    -- Only roles made here get the comment, because the server takes it as permission to set a password.
    select 1 as step, rolname, format(
        'begin if not exists (select from pg_catalog.pg_roles where rolname = %1$L) then create role %1$I %2$s; %3$s end if; end',
        rolname,
        case when not is_bare then concat_ws(' ', case when rolcanlogin then 'login' end, case when not rolinherit then 'noinherit' end,
            case when rolcreaterole then 'createrole' end, case when rolcreatedb then 'createdb' end) end,
        case when shobj_description(oid, 'pg_authid') is not null
             then format('comment on role %I is %L;', rolname, shobj_description(oid, 'pg_authid')) end) as line
    from ours
    union all
    -- The restoring role may lack the right to set these attributes.
    select 2, rolname, format('begin alter role %I bypassrls; exception when insufficient_privilege then null; end', rolname)
    from ours where rolbypassrls and not is_bare
    union all
    select 2, rolname, format('begin alter role %I replication; exception when insufficient_privilege then null; end', rolname)
    from ours where rolreplication and not is_bare
    union all
    -- What another database's roles may already is left to them, and nobody becomes a member of a superuser.
    select 3, member, format(
        'begin
           if exists (select from pg_catalog.pg_roles where rolname = %1$L and rolsuper) or exists (
               select from pg_catalog.pg_auth_members m join pg_catalog.pg_roles g on g.oid = m.roleid
               join pg_catalog.pg_roles u on u.oid = m.member
               where g.rolname = %1$L and u.rolname = %2$L and (m.admin_option or not %3$s)) then return; end if;
           begin
             execute %4$L || case when current_setting(''server_version_num'')::int >= 160000 then %5$L else %6$L end;
           exception when insufficient_privilege or invalid_grant_operation then
             execute %4$L;
           end;
         exception when insufficient_privilege or invalid_grant_operation or undefined_object then null; end',
        granted, member, is_admin::text, format('grant %I to %I', granted, member),
        coalesce(' with ' || nullif(concat_ws(', ', case when is_admin then 'admin true' end, 'inherit ' || inherits, 'set ' || may_set), ''), ''),
        case when is_admin then ' with admin option' else '' end)
    from memberships
    union all
    -- A restoring role that is not a superuser must be a member of a role to make it an owner.
    select 4, rolname, format(
        'begin
           if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) and current_user <> %1$L then
             grant %1$I to current_user;
           end if;
         exception when insufficient_privilege or invalid_grant_operation then null; end', rolname)
    from ours
), members as (
    select d.classid, d.objid from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
    where d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and d.deptype = 'e' and e.extname = 'plpgsql' and d.objid >= 16384
), objects as (
    select 5 as step, n.nspname, format('create schema if not exists %I;', n.nspname) as line
    from members m join pg_catalog.pg_namespace n on m.classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass and n.oid = m.objid
    union all
    select 6, '', 'set check_function_bodies = off;'
    union all
    select 7, p.proname, pg_catalog.pg_get_functiondef(p.oid) || ';'
    from members m join pg_catalog.pg_proc p on m.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = m.objid
    union all
    select 8, c.relname, format('create or replace view %s as %s', c.oid::pg_catalog.regclass, pg_catalog.pg_get_viewdef(c.oid))
    from members m join pg_catalog.pg_class c on m.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and c.oid = m.objid and c.relkind = 'v'
)
select coalesce(string_agg(line, E'\n' order by step, rolname, line), '')
from (select step, rolname, format('do %L;', line) as line from lines union all select * from objects) all_lines
