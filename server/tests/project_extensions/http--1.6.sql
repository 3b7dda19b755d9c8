-- The interface of pgsql-http, so that migrations that define functions with it load. A statement that waits for
-- another server would hold its locks, so requests are refused with a hint; functions that need no request work.

create domain http_method as text;
create type http_header as (field varchar, value varchar);
create type http_request as (
  method http_method, uri varchar, headers http_header[], content_type varchar, content varchar);
create type http_response as (status integer, content_type varchar, headers http_header[], content varchar);

create function http_header(field varchar, value varchar) returns http_header
language sql immutable
as $$ select $1, $2 $$;

create function http(request http_request) returns http_response
language plpgsql
as $$
begin
  raise exception 'HTTP requests within a statement are not made here'
    using errcode = '0A000', hint = 'Queue it with net.http_get or net.http_post (extension pg_net), or call it from an edge function.';
end $$;

create function http_get(uri varchar) returns http_response language sql
as $$ select @extschema@.http(('GET', uri, null, null, null)::@extschema@.http_request) $$;
create function http_get(uri varchar, data jsonb) returns http_response language sql
as $$ select @extschema@.http(('GET', uri, null, null, null)::@extschema@.http_request) $$;
create function http_post(uri varchar, content varchar, content_type varchar) returns http_response language sql
as $$ select @extschema@.http(('POST', uri, null, content_type, content)::@extschema@.http_request) $$;
create function http_post(uri varchar, data jsonb) returns http_response language sql
as $$ select @extschema@.http(('POST', uri, null, 'application/x-www-form-urlencoded', null)::@extschema@.http_request) $$;
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

create function urlencode(string varchar) returns text
language sql immutable strict
as $$
  select coalesce(string_agg(
    case when c ~ '^[A-Za-z0-9_.~-]$' then c
         else upper(regexp_replace(encode(convert_to(c, 'utf8'), 'hex'), '(..)', '%\1', 'g')) end, '' order by place), '')
  from regexp_split_to_table(string, '') with ordinality as characters (c, place)
$$;
create function urlencode(data jsonb) returns text
language sql immutable strict
as $$
  select string_agg(@extschema@.urlencode(key::varchar) || '=' || @extschema@.urlencode(value::varchar), '&')
  from jsonb_each_text(data)
$$;

create function http_set_curlopt(curlopt varchar, value varchar) returns boolean language sql as $$ select true $$;
create function http_reset_curlopt() returns boolean language sql as $$ select true $$;
create function http_list_curlopt() returns table (curlopt text, value text) language sql
as $$ select null::text, null::text where false $$;
create function bytea_to_text(data bytea) returns text language sql immutable
as $$ select convert_from(data, 'utf8') $$;
create function text_to_bytea(data text) returns bytea language sql immutable
as $$ select convert_to(data, 'utf8') $$;
