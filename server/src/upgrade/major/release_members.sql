-- Takes our functions for projects out of the extension plpgsql, whose members `pg_upgrade` expects in the new cluster already. The
-- platform's first run there makes them members again; see docs/decisions/names-of-our-own.md.
set search_path = pg_catalog, pg_temp;
set statement_timeout = 0;
do $$
declare
  item record;
begin
  if current_setting('event_triggers', true) is not null then
    set local event_triggers = off;
  end if;
  for item in
    select named.type, named.identity
    from pg_depend d
    join pg_extension e on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid and d.deptype = 'e'
    cross join pg_identify_object(d.classid, d.objid, 0) as named
    -- A view's types go with it.
    where e.extname = 'plpgsql' and d.objid >= 16384 and d.classid <> 'pg_type'::regclass
  loop
    execute format('alter extension plpgsql drop %s %s', item.type, item.identity);
  end loop;
end $$
