-- The program pg_repack finds its version here and, without its library, repacks nothing.
create function version() returns text language sql immutable
as $$ select 'not served by Ferrobase'::text $$;
