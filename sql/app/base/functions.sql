-- Functions that all subjects use: settings, errors, small values, tokens, rate limits, one content per key.

-- ------------------------------------------------------------------------------------------------------------ settings

-- The value of one setting: `app.settings.<key>` when the server sets it, else the row, else null.
create or replace function private.setting(p_key text) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce(
    nullif(current_setting('app.settings.' || p_key, true), ''),
    (select s.value from private.app_settings s where s.key = p_key))
$$;

-- Absolute address of a page of the web app; p_path begins with a slash.
create or replace function private.site_link(p_path text) returns text
language sql stable security definer set search_path = '' as $$
  select rtrim(private.setting('site_url'), '/') || p_path
$$;

-- -------------------------------------------------------------------------------------------------------------- errors

-- Raises an error that the page can map: HTTP status as PTnnn, stable code in HINT, JSON in DETAIL.
create or replace function private.fail(p_status int, p_code text, p_message text, p_detail jsonb default '{}'::jsonb) returns void
language plpgsql set search_path = '' as $$
begin
  raise exception using errcode = 'PT' || p_status, message = p_message, hint = p_code, detail = p_detail::text;
end $$;

create or replace function private.fail_fields(p_message text, p_fields jsonb) returns void
language plpgsql set search_path = '' as $$
begin
  if p_fields <> '{}' then
    perform private.fail(422, 'validation_failed', p_message, jsonb_build_object('fields', p_fields));
  end if;
end $$;

-- The caller's id, or error 401 `sign_in_required`.
create or replace function private.require_user() returns uuid
language plpgsql stable security definer set search_path = '' as $$
begin
  if auth.uid() is null then
    perform private.fail(401, 'sign_in_required', 'Please log in to continue.');
  end if;
  return auth.uid();
end $$;

-- True when the statement comes straight from an API caller and not from one of our definer functions.
create or replace function private.is_client() returns boolean
language sql stable set search_path = '' as $$
  select current_user in ('anon', 'authenticated')
$$;

-- An address in the form used for comparison: only ASCII letters are case-folded, as in schema auth. K (U+212A) is not
-- k, so such addresses stay different.
create or replace function private.folded(p_address text) returns text
language sql immutable parallel safe set search_path = '' as $$
  select lower(p_address collate "C") collate "default"
$$;

-- A client's own id is used only if it is a uuid; anything else is replaced by a new one.
create or replace function private.client_id(p text) returns text
language sql volatile set search_path = '' as $$
  select case when p ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p else gen_random_uuid()::text end
$$;

-- -------------------------------------------------------------------------------------------------------- small values

-- Trims the text and removes direction overrides and zero-width characters, with which a name could imitate another. U+200C, U+200D,
-- U+200E and U+200F stay: some languages need them.
create or replace function private.clean(p text) returns text
language sql immutable set search_path = '' as $$
  select nullif(btrim(regexp_replace(p, '[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]', '', 'g'), E' \t\r\n\u00a0'), '')
$$;

-- For names that clients write into the table themselves; tg_argv are the columns.
create or replace function private.clean_names() returns trigger
language plpgsql security definer set search_path = '' as $$
declare given jsonb := to_jsonb(new); changed jsonb := '{}'; name text;
begin
  foreach name in array tg_argv loop
    if given ->> name ~ '[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]' then
      changed := changed || jsonb_build_object(name, private.clean(given ->> name));
    end if;
  end loop;
  if changed <> '{}' then new := jsonb_populate_record(new, changed); end if;
  return new;
end $$;

-- The text on one line: without breaks and tabs a name cannot start a paragraph.
create or replace function private.one_line(p text) returns text
language sql immutable set search_path = '' as $$
  select btrim(regexp_replace(p, '[[:cntrl:][:space:]]+', ' ', 'g'))
$$;

-- '$100' or '$99.50': the amount text the product shows. Null gives 'Not specified'.
create or replace function private.amount_text(p numeric) returns text
language sql immutable set search_path = '' as $$
  select case when p is null then 'Not specified'
              when p = trunc(p) then '$' || trunc(p)::text
              else '$' || round(p, 2)::text end
$$;

-- The number in an amount text: '$1,200' gives 1200. Null if there is none.
create or replace function private.amount_number(p text) returns numeric
language sql immutable set search_path = '' as $$
  select case when regexp_replace(coalesce(p, ''), '[^0-9.]', '', 'g') ~ '^[0-9]{1,9}(\.[0-9]{1,2})?$'
              then regexp_replace(p, '[^0-9.]', '', 'g')::numeric end
$$;

-- A typed amount: > 0, at most two decimals, below ten million; else 422 `invalid_amount`.
create or replace function private.require_amount(p numeric) returns numeric
language plpgsql immutable set search_path = '' as $$
begin
  if p is null or p = 'NaN' or p <= 0 or p <> round(p, 2) or p >= 10000000 then
    perform private.fail(422, 'invalid_amount', 'Enter an amount above 0 with at most two decimals.',
      jsonb_build_object('fields', jsonb_build_object('amount', 'Enter an amount above 0 with at most two decimals.')));
  end if;
  return p;
end $$;

-- Sets updated_at on every table that has one.
create or replace function private.touch() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.updated_at := now();
  return new;
end $$;

-- ---------------------------------------------------------------------------------------------------- tokens and codes

-- Six digits from the random leading bytes of a uuid.
create or replace function private.new_code() returns text
language sql volatile set search_path = '' as $$
  select lpad((('x' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 8))::bit(32)::bigint % 1000000)::text, 6, '0')
$$;

create or replace function private.hash_token(p text) returns text
language sql immutable set search_path = '' as $$
  select encode(sha256(convert_to(coalesce(p, ''), 'utf8')), 'hex')
$$;

-- --------------------------------------------------------------------------------------------- callers and rate limits

-- The caller's network address: `ferrobase.client_address`, set by the server, or else the last hop of X-Forwarded-For, which the
-- proxy in front of another server wrote.
create or replace function private.client_address() returns text
language plpgsql stable security definer set search_path = '' as $$
declare hops text[];
begin
  if nullif(current_setting('ferrobase.client_address', true), '') is not null then
    return current_setting('ferrobase.client_address', true);
  end if;
  hops := string_to_array(nullif(current_setting('request.headers', true), '')::jsonb ->> 'x-forwarded-for', ',');
  return coalesce(private.clean(hops[array_length(hops, 1)]), 'unknown');
end $$;

-- The caller's network: the IPv4 address, or the /64 of an IPv6 address.
create or replace function private.client_network() returns text
language plpgsql stable security definer set search_path = '' as $$
declare a text := regexp_replace(private.client_address(), '^::ffff:(?=\d+\.)', '', 'i');
begin
  return case when family(a::inet) = 6 then host(network(set_masklen(a::inet, 64))) || '/64' else a end;
exception when invalid_text_representation then return a;
end $$;

-- Counts one use of p_key in the current window. False once p_max uses (times the setting rate_limit_factor) are used
-- up.
create or replace function private.take(p_key text, p_max int, p_window interval) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  secs numeric := extract(epoch from p_window);
  start timestamptz := to_timestamp(floor(extract(epoch from now()) / secs) * secs);
  n int;
begin
  insert into private.rate_limits as r (key, window_start, hits) values (p_key, start, 1)
  on conflict (key, window_start) do update set hits = r.hits + 1 returning hits into n;
  return n <= p_max * coalesce(private.setting('rate_limit_factor')::numeric, 1);
end $$;

create or replace function private.require_rate(p_key text, p_max int, p_window interval) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not private.take(p_key, p_max, p_window) then
    perform private.fail(429, 'rate_limited', 'Too many tries in a short time. Please wait a little and try again.',
      jsonb_build_object('retry_after_seconds', ceil(extract(epoch from p_window))));
  end if;
end $$;

-- ---------------------------------------------------------------------------------------------------- idempotency keys

create or replace function private.keep_content(p_scope text, p_key uuid, p_content jsonb) returns void
language sql volatile security definer set search_path = '' as $$
  insert into private.sent_contents (scope, key, hash)
  select p_scope, p_key, sha256(convert_to(jsonb_strip_nulls(p_content)::text, 'utf8')) where p_key is not null
  on conflict do nothing
$$;

-- Refuses with 409 `key_reused` and p_message if this key was used for other content.
create or replace function private.require_same_content(p_scope text, p_key uuid, p_content jsonb, p_message text, p_detail jsonb default '{}') returns void
language plpgsql stable security definer set search_path = '' as $$
begin
  if exists (select 1 from private.sent_contents c where c.scope = p_scope and c.key = p_key
    and c.hash <> sha256(convert_to(jsonb_strip_nulls(p_content)::text, 'utf8'))) then
    perform private.fail(409, 'key_reused', p_message, p_detail);
  end if;
end $$;
