-- What makes the requests of `http`; its scripts include this file.

-- dblink's code, the only way in which PostgreSQL's own package can reach the server from within a statement. Installed as an
-- extension, dblink would be the project's, and so is the schema of this extension: its functions are in `pg_catalog`, where only
-- superusers can create any. A PostgreSQL without it, or one that is not the embedded one, makes no requests.
do $$
begin
  if pg_catalog.current_setting('ferrobase.is_foreign', true) = 'on' then
    return;
  end if;
  create function pg_catalog.ferrobase_http_open(text, text) returns text
  language c volatile strict as '$libdir/dblink', 'dblink_connect';
  create function pg_catalog.ferrobase_http_send(text, text) returns integer
  language c volatile strict as '$libdir/dblink', 'dblink_send_query';
  create function pg_catalog.ferrobase_http_is_busy(text) returns integer
  language c volatile strict as '$libdir/dblink', 'dblink_is_busy';
  create function pg_catalog.ferrobase_http_result(text) returns setof record
  language c volatile strict as '$libdir/dblink', 'dblink_get_result';
  create function pg_catalog.ferrobase_http_close(text) returns text
  language c volatile strict as '$libdir/dblink', 'dblink_disconnect';
  revoke execute on function pg_catalog.ferrobase_http_open(text, text), pg_catalog.ferrobase_http_send(text, text),
    pg_catalog.ferrobase_http_is_busy(text), pg_catalog.ferrobase_http_result(text), pg_catalog.ferrobase_http_close(text) from public;
exception when undefined_file or insufficient_privilege then
  null;
end $$;

-- Runs as the superuser, because dblink lets nobody else connect without a password; so it names nothing in the extension's schema,
-- which the project may own: types are those of its argument.
create or replace function @extschema@.http(request @extschema@.http_request) returns @extschema@.http_response
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  method text := upper(request.method);
  options jsonb := coalesce(nullif(current_setting('http.curlopts', true), ''), '{}')::jsonb;
  milliseconds bigint;
  asked jsonb;
  told jsonb;
  connection constant text := 'ferrobase http';
  opened text;
  pause float := 0.0005;
begin
  if request.uri is null then
    raise exception 'http_request.uri is NULL' using errcode = 'XX000';
  elsif method is null then
    raise exception 'http_request.method is NULL' using errcode = 'XX000';
  elsif request.content is not null and request.content_type is null then
    raise exception 'http_request.content_type is NULL' using errcode = 'XX000';
  elsif request.content is null and method in ('PUT', 'POST') then
    raise exception 'http_request.content is NULL' using errcode = 'XX000';
  end if;
  if exists (select from unnest(request.headers) h where h.field ilike 'content-type%') then
    raise notice '''Content-Type'' is not supported as an optional header';
  end if;
  milliseconds := coalesce(nullif(nullif(current_setting('http.timeout_msec', true), ''), '0')::bigint,
                           (options ->> 'CURLOPT_TIMEOUT_MS')::bigint, (options ->> 'CURLOPT_TIMEOUT')::bigint * 1000, 5000);
  asked := jsonb_build_object(
    'method', method, 'url', request.uri, 'content_type', request.content_type, 'content', request.content,
    'milliseconds', greatest(milliseconds, 0), 'login', options -> 'CURLOPT_USERPWD',
    'agent', coalesce(options ->> 'CURLOPT_USERAGENT', version()),
    'headers', (select coalesce(jsonb_agg(jsonb_build_array(h.field, coalesce(h.value, ''))), '[]'::jsonb)
                from unnest(request.headers) h
                where h.field <> '' and h.field not ilike 'content-type%'));
  if to_regprocedure('pg_catalog.ferrobase_http_open(text, text)') is null then
    raise exception 'HTTP requests within a statement are not made here'
      using errcode = '0A000', hint = 'Queue it with net.http_get or net.http_post (extension pg_net), or call it from an edge function.';
  end if;
  begin
    -- There is no row for whoever may not see the setting.
    select ferrobase_http_open(connection,
      format('host=''%s'' port=80 user=http dbname=http connect_timeout=5',
             replace(replace(trim(both '"' from setting), '\', '\\'), '''', '\''')))
    into opened from pg_settings where name = 'unix_socket_directories';
  exception when sqlclient_unable_to_establish_sqlconnection then
    raise exception 'HTTP requests are made by Ferrobase, which does not run' using errcode = '57P03',
      hint = 'Start it: it makes the requests of this database''s statements.';
  end;
  if opened is null then
    perform ferrobase_http_open(connection, '');
  end if;
  begin
    perform ferrobase_http_send(connection, asked::text);
    -- Waiting for the result, dblink would not notice that the statement is cancelled.
    while ferrobase_http_is_busy(connection) = 1 loop
      perform pg_sleep(pause);
      pause := least(pause * 1.2, 0.02);
    end loop;
    select answer::jsonb into told from ferrobase_http_result(connection) as called (answer text);
    perform ferrobase_http_close(connection);
  exception when query_canceled or others then
    -- The server ends the request.
    perform ferrobase_http_close(connection);
    raise;
  end;
  request := jsonb_populate_record(request, jsonb_build_object('headers', (
    select coalesce(jsonb_agg(jsonb_build_object('field', h ->> 0, 'value', h ->> 1)), '[]'::jsonb)
    from jsonb_array_elements(told -> 'headers') h)));
  return row((told ->> 'status')::integer, (told ->> 'content_type')::varchar, request.headers, (told ->> 'content')::varchar);
end $$;

create or replace function @extschema@.urlencode(string varchar) returns text
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$
  select coalesce(string_agg(
    case when c ~ '^[A-Za-z0-9_.~-]$' then c
         when c = ' ' then '+'
         else upper(regexp_replace(encode(convert_to(c, 'utf8'), 'hex'), '(..)', '%\1', 'g')) end, '' order by place), '')
  from regexp_split_to_table(string, '') with ordinality as characters (c, place)
$$;
create or replace function @extschema@.urlencode(string bytea) returns text
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$
  select coalesce(string_agg(
    case when byte = 32 then '+'
         when chr(byte) ~ '^[A-Za-z0-9_.~-]$' then chr(byte)
         else '%' || lpad(upper(to_hex(byte)), 2, '0') end, '' order by place), '')
  from (select place, get_byte(string, place) as byte from generate_series(0, length(string) - 1) place) bytes
  where byte > 0
$$;
-- Members that are not scalar are left out.
create or replace function @extschema@.urlencode(data jsonb) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(data) <> 'object' then
    raise exception 'cannot call urlencode_jsonb on a non-object' using errcode = '22023';
  end if;
  return (select string_agg(@extschema@.urlencode(key::varchar) || '=' ||
                              @extschema@.urlencode((coalesce(case when jsonb_typeof(value) = 'number'
                                then trim_scale((value #>> '{}')::numeric)::text else value #>> '{}' end, ''))::varchar), '&')
          from jsonb_each(data) where key <> '' and jsonb_typeof(value) not in ('object', 'array'));
end $$;

create or replace function @extschema@.http_get(uri varchar, data jsonb) returns @extschema@.http_response language sql
as $$ select @extschema@.http(('GET', uri || '?' || @extschema@.urlencode(data), null, null, null)::@extschema@.http_request) $$;
create or replace function @extschema@.http_post(uri varchar, data jsonb) returns @extschema@.http_response language sql
as $$
  select @extschema@.http(
    ('POST', uri, null, 'application/x-www-form-urlencoded', @extschema@.urlencode(data))::@extschema@.http_request)
$$;

-- Options hold for the session. True if the option is served.
create or replace function @extschema@.http_set_curlopt(curlopt varchar, value varchar) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  option text := upper(curlopt);
  options jsonb := coalesce(nullif(current_setting('http.curlopts', true), ''), '{}')::jsonb;
begin
  if curlopt is null or value is null then
    return false;
  elsif option in ('CURLOPT_TIMEOUT', 'CURLOPT_TIMEOUT_MS', 'CURLOPT_CONNECTTIMEOUT') then
    options := options || jsonb_build_object(option, coalesce(substring(value from '^\s*(-?\d{1,9})'), '0'));
  elsif option in ('CURLOPT_USERAGENT', 'CURLOPT_USERPWD', 'CURLOPT_TCP_KEEPALIVE', 'CURLOPT_TCP_KEEPIDLE', 'CURLOPT_IPRESOLVE') then
    options := options || jsonb_build_object(option, value);
  elsif option ~ '^CURLOPT_(CAINFO|SSL|PROXY|PRE_PROXY|TLSAUTH|DNS_SERVERS)' then
    raise warning 'curl option ''%'' is not served by Ferrobase, and left out', curlopt;
    return false;
  else
    raise exception 'curl option ''%'' is not available for run-time configuration', curlopt using errcode = 'XX000';
  end if;
  perform set_config('http.curlopts', options::text, false);
  return true;
end $$;
create or replace function @extschema@.http_reset_curlopt() returns boolean
language sql set search_path = pg_catalog, pg_temp
as $$ select set_config('http.curlopts', '', false) is not null $$;
create or replace function @extschema@.http_list_curlopt() returns table (curlopt text, value text)
language sql set search_path = pg_catalog, pg_temp
as $$ select key, value from jsonb_each_text(coalesce(nullif(current_setting('http.curlopts', true), ''), '{}')::jsonb) $$;
