-- What instances of earlier versions need that are still connected: views on the tables by the names of then, and their login. Dropped
-- once none of them is; they are always connected, because they listen for mail. Run at every start.
do $$
declare
  item record;
begin
  if pg_catalog.to_regrole('ferrobase_admin') is null
     and not exists (select from pg_catalog.pg_class c where c.relnamespace = pg_catalog.to_regnamespace('ferrobase')
                     and c.relkind = 'v' and pg_catalog.to_regclass(pg_catalog.format('_supavisor.%I', c.relname)) is not null
                     and c.relname <> 'hourly')
     or exists (select from pg_catalog.pg_stat_activity where datname = pg_catalog.current_database() and usename = 'ferrobase_admin') then
    return;
  end if;

  for item in
    select c.relname as name, exists (
      select from pg_catalog.pg_depend d
      where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid and d.deptype = 'e') as is_member
    from pg_catalog.pg_class c
    where c.relnamespace = pg_catalog.to_regnamespace('ferrobase') and c.relkind = 'v' and c.relname <> 'hourly'
      and pg_catalog.to_regclass(pg_catalog.format('_supavisor.%I', c.relname)) is not null
  loop
    if item.is_member then
      execute pg_catalog.format('alter extension plpgsql drop view ferrobase.%I', item.name);
    end if;
    execute pg_catalog.format('drop view ferrobase.%I', item.name);
  end loop;

  if exists (select from pg_catalog.pg_stat_activity where usename = 'ferrobase_admin') then
    return; -- of an instance with another database of this cluster
  end if;
  if pg_catalog.shobj_description(pg_catalog.to_regrole('ferrobase_admin'), 'pg_authid') = 'Made by ferrobase' then
    begin
      drop owned by ferrobase_admin;
      drop role ferrobase_admin;
    exception when dependent_objects_still_exist or insufficient_privilege then
      null; -- other databases have rights for it; or whoever runs this may not
    end;
  end if;
end $$
