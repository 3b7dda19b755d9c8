-- A guard at the beginning of extensions whose functions run as the superuser; `\i own_schema.sql` includes it.
--
-- PostgreSQL runs an extension's script as a superuser, in the schema of its control file, which it creates as the caller if it is
-- missing. The owner of the schema could replace our functions, and objects of the caller in it could be found by them. So the
-- schema becomes the superuser's, others lose their privileges on it, and it must be empty.
set local search_path = pg_catalog, pg_temp;

do $$
declare
  grantee text;
begin
  execute pg_catalog.format('alter schema @extschema@ owner to %I', current_user);
  for grantee in
    select distinct a.grantee::pg_catalog.regrole::text from pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
    where n.nspname = '@extschema@' and a.grantee not in (0, n.nspowner)
  loop
    execute pg_catalog.format('revoke all on schema @extschema@ from %s cascade', grantee);
  end loop;
  if exists (select from pg_catalog.pg_depend
             where refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
               and refobjid = '@extschema@'::pg_catalog.regnamespace and classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass) then
    raise exception 'the schema @extschema@ is in use already' using errcode = '42P06', hint = 'Drop it first.';
  end if;
end $$;
revoke all on schema @extschema@ from public;
