-- What PostgreSQL keeps for superusers or for the owners of an extension's objects, and Supabase's `postgres` may do: publications of
-- all tables, and moving an extension of its own to another schema. Before PostgreSQL 17 a function cannot keep the project's event
-- triggers out, so there is no such function.
do $$
begin
  if current_user <> 'supabase_admin' or current_setting('server_version_num')::int < 170000 then
    return;
  end if;

  -- Replaces `create publication … for all tables` in a project's migrations. `publish` is the value of that option, if given. The
  -- publication is the caller's.
  create or replace function ferrobase.create_publication_of_all(name text, publish text) returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $create$
  begin
    execute pg_catalog.format('create publication %I for all tables %s', name,
      case when publish is null then '' else pg_catalog.format('with (publish = %L)', publish) end);
    if name = 'supabase_realtime' and pg_catalog.current_setting('server_version_num')::int >= 180000 then
      -- As `publish_generated_columns` does, which does not run here.
      alter publication supabase_realtime set (publish_generated_columns = stored);
    end if;
    -- Only superusers may own one of all tables by `alter publication … owner`.
    update pg_catalog.pg_publication set pubowner = session_user::regrole where pubname = name;
    insert into pg_catalog.pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
    select d.oid, 'pg_catalog.pg_publication'::regclass, p.oid, 0, 'pg_catalog.pg_authid'::regclass, session_user::regrole, 'o'
    from pg_catalog.pg_publication p, pg_catalog.pg_database d
    where p.pubname = name and d.datname = pg_catalog.current_database();
  end $create$;

  -- Replaces `alter extension … set schema`.
  create or replace function ferrobase.move_extension(name text, schema text) returns void
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set event_triggers = off
  as $move$
  begin
    if not exists (
      select from pg_catalog.pg_extension e
      where e.extname = name and pg_catalog.pg_has_role(session_user, e.extowner, 'member')
    ) then
      raise exception 'must be owner of extension %', name using errcode = '42501';
    elsif not pg_catalog.has_schema_privilege(session_user, schema, 'create') then
      raise exception 'permission denied for schema %', schema using errcode = '42501';
    end if;
    execute pg_catalog.format('alter extension %I set schema %I', name, schema);
  end $move$;
  revoke execute on function ferrobase.create_publication_of_all(text, text), ferrobase.move_extension(text, text) from public;
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant execute on function ferrobase.create_publication_of_all(text, text), ferrobase.move_extension(text, text) to postgres;
  end if;
end $$;
