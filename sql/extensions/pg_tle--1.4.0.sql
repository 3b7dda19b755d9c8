-- Extensions written in SQL and installed from SQL, with the names of pg_tle. `install_extension` writes a control file and scripts
-- into the cluster's folder `tle`, which PostgreSQL searches after its own. Then PostgreSQL creates, updates and drops them like others.
--
-- Their scripts run with the rights of whoever creates them (`superuser = false`), so installing one grants no rights. Files are not
-- rolled back: an extension whose installation was rolled back stays on disk, and the next installation overwrites it.
-- Hooks (passcheck, clientauth) and base types need pg_tle's library and are refused.

\i own_schema.sql

create table pgtle.installed (
  name            text primary key,
  default_version text not null,
  description     text not null,
  requires        text[] not null
);
create table pgtle.scripts (
  name text not null references pgtle.installed on delete cascade,
  -- The version that it makes, or two: from one to another.
  path text not null,
  body text not null,
  primary key (name, path)
);
select pg_extension_config_dump('pgtle.installed', '');
select pg_extension_config_dump('pgtle.scripts', '');

-- Names and versions become names of files.
create function pgtle._require_name(kind text, given text) returns text
language plpgsql immutable
as $$
begin
  if given is null or given !~ '^[A-Za-z0-9_][A-Za-z0-9_.+-]*$' or given ~ '--|-$' or length(given) > 60 then
    raise exception 'invalid extension %: "%"', kind, given using errcode = 'invalid_parameter_value',
      detail = 'It may hold letters, digits, "_", ".", "+" and single "-".';
  end if;
  return given;
end $$;

create function pgtle._file(name text) returns text
language sql stable
as $$ select current_setting('data_directory') || '/tle/extension/' || name $$;

create function pgtle._write(name text, body text) returns void
language plpgsql
as $$
declare
  made oid := lo_from_bytea(0, convert_to(body, 'utf8'));
begin
  perform lo_export(made, pgtle._file(name));
  perform lo_unlink(made);
end $$;

create function pgtle._remove(name text) returns void
language plpgsql
as $$
begin
  execute format('copy (select where false) to program %L',
    'rm -f -- ''' || replace(pgtle._file(name), '''', '''\''''') || '''');
end $$;

create function pgtle._write_control(extension text) returns void
language sql
as $$
  select pgtle._write(name || '.control', format(
    E'comment = %L\ndefault_version = %L\nrelocatable = false\nsuperuser = false\ntrusted = false\nencoding = ''UTF8''\n%s',
    replace(translate(description, E'\\\n\r', '/  '), '''', ' '), default_version,
    case when requires = '{}' then '' else format(E'requires = %L\n', array_to_string(requires, ', ')) end))
  from pgtle.installed where name = extension
$$;

create function pgtle._require_installed(extension text) returns void
language plpgsql stable
as $$
begin
  if not exists (select from pgtle.installed where name = extension) then
    raise exception 'extension "%" does not exist', extension using errcode = 'undefined_object';
  end if;
end $$;

create function pgtle.install_extension(name text, version text, description text, ext text, requires text[] default null)
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  needed text;
begin
  perform pgtle._require_name('name', name), pgtle._require_name('version', version);
  foreach needed in array coalesce(requires, '{}') loop
    perform pgtle._require_name('name', needed);
  end loop;
  if exists (select from pgtle.installed i where i.name = install_extension.name) then
    raise exception 'extension "%" already installed', name using errcode = 'duplicate_object';
  end if;
  -- Nothing takes the name of an extension that comes with the server.
  if exists (
    select from pg_available_extensions a
    where a.name = install_extension.name and pg_stat_file(pgtle._file(install_extension.name || '.control'), true) is null
  ) then
    raise exception 'control file already exists for the % extension', name using errcode = 'duplicate_object';
  end if;
  insert into pgtle.installed values (name, version, coalesce(description, ''), coalesce(requires, '{}'));
  insert into pgtle.scripts values (name, version, ext);
  perform pgtle._write(format('%s--%s.sql', name, version), ext), pgtle._write_control(name);
  return true;
end $$;

create function pgtle.install_extension_version_sql(name text, version text, ext text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgtle._require_name('version', version), pgtle._require_installed(name);
  insert into pgtle.scripts values (name, version, ext)
  on conflict on constraint scripts_pkey do update set body = excluded.body;
  perform pgtle._write(format('%s--%s.sql', name, version), ext);
  return true;
end $$;

create function pgtle.install_update_path(name text, fromvers text, tovers text, ext text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgtle._require_name('version', fromvers), pgtle._require_name('version', tovers), pgtle._require_installed(name);
  insert into pgtle.scripts values (name, fromvers || '--' || tovers, ext);
  perform pgtle._write(format('%s--%s--%s.sql', name, fromvers, tovers), ext);
  return true;
exception when unique_violation then
  raise exception 'extension "%" update path "%-%" already installed', name, fromvers, tovers using errcode = 'duplicate_object';
end $$;

create function pgtle.set_default_version(name text, version text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgtle._require_name('version', version), pgtle._require_installed(name);
  update pgtle.installed i set default_version = version where i.name = set_default_version.name;
  perform pgtle._write_control(name);
  return true;
end $$;

create function pgtle.uninstall_extension(extname text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgtle._require_installed(extname);
  if exists (select from pg_extension e where e.extname = uninstall_extension.extname) then
    raise exception 'cannot uninstall extension "%", which is created in this database', extname
      using errcode = 'dependent_objects_still_exist', hint = format('drop extension %I first', extname);
  end if;
  perform pgtle._remove(format('%s--%s.sql', s.name, s.path)) from pgtle.scripts s where s.name = extname;
  perform pgtle._remove(extname || '.control');
  delete from pgtle.installed i where i.name = extname;
  return true;
end $$;

create function pgtle.uninstall_extension(extname text, version text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgtle._require_installed(extname);
  if exists (select from pgtle.installed i where i.name = extname and i.default_version = version) then
    raise exception 'cannot uninstall the default version of extension "%"', extname
      using errcode = 'object_in_use', hint = 'Call pgtle.set_default_version first.';
  end if;
  delete from pgtle.scripts s where s.name = extname and s.path = version;
  if not found then
    raise exception 'version "%" of extension "%" does not exist', version, extname using errcode = 'undefined_object';
  end if;
  perform pgtle._remove(format('%s--%s.sql', extname, version));
  return true;
end $$;

create function pgtle.uninstall_extension_if_exists(extname text) returns boolean
language plpgsql
as $$
begin
  if not exists (select from pgtle.available_extensions() a where a.name = extname) then
    return false;
  end if;
  return pgtle.uninstall_extension(extname);
end $$;

create function pgtle.uninstall_update_path(extname text, fromvers text, tovers text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from pgtle.scripts s where s.name = extname and s.path = fromvers || '--' || tovers;
  if not found then
    raise exception 'extension "%" has no update path from "%" to "%"', extname, fromvers, tovers using errcode = 'undefined_object';
  end if;
  perform pgtle._remove(format('%s--%s--%s.sql', extname, fromvers, tovers));
  return true;
end $$;

create function pgtle.uninstall_update_path_if_exists(extname text, fromvers text, tovers text) returns boolean
language plpgsql
as $$
begin
  return pgtle.uninstall_update_path(extname, fromvers, tovers);
exception when undefined_object then
  return false;
end $$;

create function pgtle.available_extensions() returns table (name name, default_version text, comment text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$ select i.name::name, i.default_version, i.description from pgtle.installed i $$;

create function pgtle.available_extension_versions() returns table (
  name name, version text, superuser boolean, trusted boolean, relocatable boolean, schema name, requires name[], comment text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select i.name::name, s.path, false, false, false, null::name, i.requires::name[], i.description
  from pgtle.installed i join pgtle.scripts s using (name) where s.path !~ '--'
$$;

create function pgtle.extension_update_paths(name name) returns table (source text, target text, path text)
language sql stable
as $$ select p.source, p.target, p.path from pg_extension_update_paths($1) p $$;

create function pgtle.register_feature(proc regproc, feature text) returns void
language plpgsql
as $$
begin
  raise exception 'hooks of pg_tle are not served here' using errcode = 'feature_not_supported';
end $$;
create function pgtle.register_feature_if_not_exists(proc regproc, feature text) returns boolean
language plpgsql
as $$
begin
  perform pgtle.register_feature(proc, feature);
  return true;
end $$;

do $$
begin
  if not exists (select from pg_roles where rolname = 'pgtle_admin') then
    create role pgtle_admin nologin;
  end if;
  revoke execute on all functions in schema pgtle from public;
  grant usage on schema pgtle to public;
  grant execute on function pgtle.available_extensions(), pgtle.available_extension_versions(), pgtle.extension_update_paths(name)
    to public;
  grant pgtle_admin to postgres with admin option;
  grant execute on function
    pgtle.install_extension(text, text, text, text, text[]), pgtle.install_extension_version_sql(text, text, text),
    pgtle.install_update_path(text, text, text, text), pgtle.set_default_version(text, text),
    pgtle.uninstall_extension(text), pgtle.uninstall_extension(text, text), pgtle.uninstall_extension_if_exists(text),
    pgtle.uninstall_update_path(text, text, text), pgtle.uninstall_update_path_if_exists(text, text, text),
    pgtle.register_feature(regproc, text), pgtle.register_feature_if_not_exists(regproc, text)
  to pgtle_admin, postgres;
end $$;
