-- Version 1.7 had dblink's code in the extension's schema, where the project could put other functions in its place.
set local search_path = pg_catalog, pg_temp;

\i http_requests.sql

drop function @extschema@.http_call_open(text, text);
drop function if exists @extschema@.http_call_send(text, text), @extschema@.http_call_is_busy(text),
  @extschema@.http_call_result(text), @extschema@.http_call_close(text);
