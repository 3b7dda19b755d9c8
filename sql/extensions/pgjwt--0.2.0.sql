-- JSON Web Tokens (RFC 7519) over pgcrypto's hmac. Names and arguments are those of pgjwt.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create function @extschema@.url_encode(data bytea) returns text
language sql immutable strict parallel safe
as $$
  select translate(encode(data, 'base64'), E'+/=\n', '-_')
$$;

create function @extschema@.url_decode(data text) returns bytea
language sql immutable strict parallel safe
as $$
  select decode(rpad(translate(data, '-_', '+/'), (length(data) + 3) / 4 * 4, '='), 'base64')
$$;

create function @extschema@.algorithm_sign(signables text, secret text, algorithm text) returns text
language sql immutable
set search_path = @extschema@, @extschema:pgcrypto@, pg_catalog
as $$
  select url_encode(hmac(signables, secret,
    case algorithm when 'HS256' then 'sha256' when 'HS384' then 'sha384' when 'HS512' then 'sha512' else '' end))
$$;

create function @extschema@.sign(payload json, secret text, algorithm text default 'HS256') returns text
language sql immutable
set search_path = @extschema@, @extschema:pgcrypto@, pg_catalog
as $$
  with signables (text) as (
    select url_encode(convert_to('{"alg":"' || algorithm || '","typ":"JWT"}', 'utf8'))
           || '.' || url_encode(convert_to(payload::text, 'utf8'))
  )
  select text || '.' || algorithm_sign(text, secret, algorithm) from signables
$$;

create function @extschema@.try_cast_double(inp text) returns double precision
language plpgsql immutable
as $$
begin
  return inp::double precision;
exception when others then
  return null;
end $$;

-- `valid` is false for a wrong signature, an algorithm other than the one expected, and a token that is expired or not
-- yet valid.
create function @extschema@.verify(token text, secret text, algorithm text default 'HS256')
returns table (header json, payload json, valid boolean)
language sql stable
set search_path = @extschema@, @extschema:pgcrypto@, pg_catalog
as $$
  with parts (items) as (select string_to_array(token, '.')),
  decoded as (
    select convert_from(url_decode(items[1]), 'utf8')::json as header,
           convert_from(url_decode(items[2]), 'utf8')::json as payload,
           items[3] = algorithm_sign(items[1] || '.' || items[2], secret, algorithm) as signed
    from parts
  )
  select d.header, d.payload,
         coalesce(d.signed, false)
         and tstzrange(
               to_timestamp(coalesce(try_cast_double(d.payload ->> 'nbf'), 0)),
               to_timestamp(coalesce(try_cast_double(d.payload ->> 'exp'), 'infinity'))
             ) @> now()
  from decoded d
$$;
