-- pgsql-http's interface. Requests are made by the server (`server/src/jobs/calls.rs`) while the statement waits.

create domain http_method as text;
create type http_header as (field varchar, value varchar);
create type http_request as (
  method http_method, uri varchar, headers http_header[], content_type varchar, content varchar);
create type http_response as (status integer, content_type varchar, headers http_header[], content varchar);

create function http_header(field varchar, value varchar) returns http_header
language sql immutable
as $$ select $1, $2 $$;

create function bytea_to_text(data bytea) returns text language sql immutable strict
as $$ select convert_from(data, 'utf8') $$;
create function text_to_bytea(data text) returns bytea language sql immutable strict
as $$ select convert_to(data, 'utf8') $$;

\i http_requests.sql

create function http_get(uri varchar) returns http_response language sql
as $$ select @extschema@.http(('GET', uri, null, null, null)::@extschema@.http_request) $$;
create function http_post(uri varchar, content varchar, content_type varchar) returns http_response language sql
as $$ select @extschema@.http(('POST', uri, null, content_type, content)::@extschema@.http_request) $$;
create function http_put(uri varchar, content varchar, content_type varchar) returns http_response language sql
as $$ select @extschema@.http(('PUT', uri, null, content_type, content)::@extschema@.http_request) $$;
create function http_patch(uri varchar, content varchar, content_type varchar) returns http_response language sql
as $$ select @extschema@.http(('PATCH', uri, null, content_type, content)::@extschema@.http_request) $$;
create function http_delete(uri varchar) returns http_response language sql
as $$ select @extschema@.http(('DELETE', uri, null, null, null)::@extschema@.http_request) $$;
create function http_delete(uri varchar, content varchar, content_type varchar) returns http_response language sql
as $$ select @extschema@.http(('DELETE', uri, null, content_type, content)::@extschema@.http_request) $$;
create function http_head(uri varchar) returns http_response language sql
as $$ select @extschema@.http(('HEAD', uri, null, null, null)::@extschema@.http_request) $$;
