-- What `dump_roles.sql` and `dump_after.sql` restore, so that a database and its restored copy can be compared: kind, name, and what
-- belongs to it.
select 'setting', r.rolname::text, item || case when s.setdatabase <> 0 then ' in this database' else '' end
from pg_catalog.pg_db_role_setting s
cross join unnest(s.setconfig) as item
join pg_catalog.pg_roles r on r.oid = s.setrole
where s.setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_database())) and not starts_with(r.rolname, 'pg_')
  and item not like '%\_preload\_libraries=%'
union all
select 'setting', '', item
from pg_catalog.pg_db_role_setting s cross join unnest(s.setconfig) as item
where s.setrole = 0 and s.setdatabase = (select oid from pg_catalog.pg_database where datname = current_database())
  and item not like '%\_preload\_libraries=%'
union all
select 'member', member.rolname, granted.rolname || case when m.admin_option and with_admin then ' with admin option' else '' end
from pg_catalog.pg_auth_members m
join pg_catalog.pg_roles granted on granted.oid = m.roleid and not granted.rolsuper
join pg_catalog.pg_roles member on member.oid = m.member and not starts_with(member.rolname, 'pg_')
cross join (values (false), (true)) as twice (with_admin)
union all
select 'event trigger', evtname, '' from pg_catalog.pg_event_trigger t
where not exists (select from pg_catalog.pg_depend d
                  where d.classid = 'pg_catalog.pg_event_trigger'::pg_catalog.regclass and d.objid = t.oid and d.deptype = 'e')
union all
select 'publication', pubname, '' from pg_catalog.pg_publication where puballtables
