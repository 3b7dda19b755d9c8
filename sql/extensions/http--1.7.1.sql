-- pgsql-http's interface. Requests are made by the server (`server/src/jobs/calls.rs`) while the statement waits.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create domain @extschema@.http_method as text;
create domain @extschema@.content_type as text check (value ~ '^\S+\/\S+');
create type @extschema@.http_header as (field varchar, value varchar);
create type @extschema@.http_request as (
  method @extschema@.http_method, uri varchar, headers @extschema@.http_header[], content_type varchar, content varchar);
create type @extschema@.http_response as (status integer, content_type varchar, headers @extschema@.http_header[], content varchar);

create function @extschema@.http_header(field varchar, value varchar) returns @extschema@.http_header
language sql immutable
as $$ select $1, $2 $$;

create function @extschema@.bytea_to_text(data bytea) returns text language sql immutable strict
as $$ select convert_from(data, 'utf8') $$;
create function @extschema@.text_to_bytea(data text) returns bytea language sql immutable strict
as $$ select convert_to(data, 'utf8') $$;

\i http_requests.sql

create function @extschema@.http_get(uri varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('GET', uri, null, null, null)::@extschema@.http_request) $$;
create function @extschema@.http_post(uri varchar, content varchar, content_type varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('POST', uri, null, content_type, content)::@extschema@.http_request) $$;
create function @extschema@.http_put(uri varchar, content varchar, content_type varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('PUT', uri, null, content_type, content)::@extschema@.http_request) $$;
create function @extschema@.http_patch(uri varchar, content varchar, content_type varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('PATCH', uri, null, content_type, content)::@extschema@.http_request) $$;
create function @extschema@.http_delete(uri varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('DELETE', uri, null, null, null)::@extschema@.http_request) $$;
create function @extschema@.http_delete(uri varchar, content varchar, content_type varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('DELETE', uri, null, content_type, content)::@extschema@.http_request) $$;
create function @extschema@.http_head(uri varchar) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('HEAD', uri, null, null, null)::@extschema@.http_request) $$;
