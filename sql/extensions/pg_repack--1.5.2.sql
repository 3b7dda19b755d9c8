-- The program pg_repack finds its version here and, without its library, repacks nothing.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create function @extschema@.version() returns text language sql immutable
as $$ select 'not served by Ferrobase'::text $$;
