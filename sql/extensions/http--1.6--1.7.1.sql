-- Version 1.6 had the types and functions, but refused every request.
set local search_path = pg_catalog, pg_temp;

create domain @extschema@.content_type as text check (value ~ '^\S+\/\S+');

\i http_requests.sql
