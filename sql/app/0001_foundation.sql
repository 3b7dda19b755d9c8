-- What every other file stands on: the private schema, settings, errors, tokens, rate limits and mail.
--
-- `public` holds what the API exposes. `private` holds helpers and tables no client may name. `functions` holds what
-- is served at /functions/v1. Functions are SECURITY DEFINER with an empty search path unless a comment says why not.

create schema if not exists private;
create schema if not exists functions;
revoke all on schema private from public;
grant usage on schema private, functions to anon, authenticated, service_role;

-- ---------------------------------------------------------------------------------------------------- settings

create table private.app_settings (
  key text primary key,
  value text not null
);
alter table private.app_settings enable row level security;
comment on table private.app_settings is
  'Fallbacks for settings of the platform. app.settings.<key>, set by the server, wins over the row.';
insert into private.app_settings (key, value) values
  ('site_url', 'http://127.0.0.1:54321'),
  ('support_email', 'support@aidbridge.example'),
  ('product_name', 'AidBridge'),
  ('nonprofit_approval_required', 'false'),
  ('rate_limit_factor', '1');

-- The value of one setting: `app.settings.<key>` when the server sets it, else the row, else null.
create function private.setting(p_key text) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce(
    nullif(current_setting('app.settings.' || p_key, true), ''),
    (select s.value from private.app_settings s where s.key = p_key))
$$;

-- Absolute address of a page of the web app; p_path begins with a slash.
create function private.site_link(p_path text) returns text
language sql stable security definer set search_path = '' as $$
  select rtrim(private.setting('site_url'), '/') || p_path
$$;

-- ------------------------------------------------------------------------------------------------------ errors

-- Raise an error the page can map: HTTP status as PTnnn, stable code in HINT, JSON in DETAIL.
create function private.fail(p_status int, p_code text, p_message text, p_detail jsonb default '{}'::jsonb) returns void
language plpgsql set search_path = '' as $$
begin
  raise exception using errcode = 'PT' || p_status, message = p_message, hint = p_code, detail = p_detail::text;
end $$;

-- The caller's id, or error 401 `sign_in_required`.
create function private.require_user() returns uuid
language plpgsql stable security definer set search_path = '' as $$
begin
  if auth.uid() is null then
    perform private.fail(401, 'sign_in_required', 'Please log in to continue.');
  end if;
  return auth.uid();
end $$;

-- True when the statement comes straight from an API caller and not from one of our definer functions.
create function private.is_client() returns boolean
language sql stable set search_path = '' as $$
  select current_user in ('anon', 'authenticated')
$$;

-- A client may bring its own id only if it is a uuid; anything else is replaced by a fresh one.
create function private.client_id(p text) returns text
language sql volatile set search_path = '' as $$
  select case when p ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p else gen_random_uuid()::text end
$$;

-- ----------------------------------------------------------------------------------------------- small values

create function private.valid_email(p text) returns boolean
language sql immutable set search_path = '' as $$
  select coalesce(length(p) <= 254 and p ~ '^[^@\s<>"(),;:\\]+@[^@\s<>"(),;:\\.]+(\.[^@\s<>"(),;:\\.]+)+$', false)
$$;

create function private.clean(p text) returns text
language sql immutable set search_path = '' as $$
  select nullif(btrim(p, E' \t\r\n\u00a0'), '')
$$;

-- '$100' or '$99.50': the amount text the product shows. Null gives 'Not specified'.
create function private.amount_text(p numeric) returns text
language sql immutable set search_path = '' as $$
  select case when p is null then 'Not specified'
              when p = trunc(p) then '$' || trunc(p)::text
              else '$' || round(p, 2)::text end
$$;

-- The number inside an amount text: '$1,200' gives 1200. Null when there is none.
create function private.amount_number(p text) returns numeric
language sql immutable set search_path = '' as $$
  select case when regexp_replace(coalesce(p, ''), '[^0-9.]', '', 'g') ~ '^[0-9]{1,9}(\.[0-9]{1,2})?$'
              then regexp_replace(p, '[^0-9.]', '', 'g')::numeric end
$$;

-- Money a person typed: > 0, at most two decimals, below ten million; else 422 `invalid_amount`.
create function private.require_amount(p numeric) returns numeric
language plpgsql immutable set search_path = '' as $$
begin
  if p is null or p = 'NaN' or p <= 0 or p <> round(p, 2) or p >= 10000000 then
    perform private.fail(422, 'invalid_amount', 'Enter an amount above 0 with at most two decimals.',
      jsonb_build_object('fields', jsonb_build_object('amount', 'Enter an amount above 0 with at most two decimals.')));
  end if;
  return p;
end $$;

-- ------------------------------------------------------------------------------------------- tokens and codes

create function private.new_token() returns text
language sql volatile set search_path = '' as $$
  select replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
$$;

-- Six digits from the random leading bytes of a uuid.
create function private.new_code() returns text
language sql volatile set search_path = '' as $$
  select lpad((('x' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 8))::bit(32)::bigint % 1000000)::text, 6, '0')
$$;

create function private.hash_token(p text) returns text
language sql immutable set search_path = '' as $$
  select encode(sha256(convert_to(coalesce(p, ''), 'utf8')), 'hex')
$$;

-- ------------------------------------------------------------------------------------------------ rate limits

create table private.rate_limits (
  key text not null,
  window_start timestamptz not null,
  hits int not null default 0,
  primary key (key, window_start)
);
alter table private.rate_limits enable row level security;

-- The caller's network address as the server vouches for it (`ferrobase.client_address`); behind another server, the last
-- hop of X-Forwarded-For, which that server's own proxy wrote.
create function private.client_address() returns text
language plpgsql stable security definer set search_path = '' as $$
declare hops text[];
begin
  if nullif(current_setting('ferrobase.client_address', true), '') is not null then
    return current_setting('ferrobase.client_address', true);
  end if;
  hops := string_to_array(nullif(current_setting('request.headers', true), '')::jsonb ->> 'x-forwarded-for', ',');
  return coalesce(private.clean(hops[array_length(hops, 1)]), 'unknown');
end $$;

-- Count one use of p_key in the current window; false once p_max uses (times setting rate_limit_factor) are spent.
create function private.take(p_key text, p_max int, p_window interval) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  secs numeric := extract(epoch from p_window);
  start timestamptz := to_timestamp(floor(extract(epoch from now()) / secs) * secs);
  n int;
begin
  insert into private.rate_limits as r (key, window_start, hits) values (p_key, start, 1)
  on conflict (key, window_start) do update set hits = r.hits + 1 returning hits into n;
  if n = 1 then
    delete from private.rate_limits where window_start < now() - interval '2 days';
  end if;
  return n <= p_max * coalesce(private.setting('rate_limit_factor')::numeric, 1);
end $$;

create function private.require_rate(p_key text, p_max int, p_window interval) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if not private.take(p_key, p_max, p_window) then
    perform private.fail(429, 'rate_limited', 'Too many tries in a short time. Please wait a little and try again.',
      jsonb_build_object('retry_after_seconds', ceil(extract(epoch from p_window))));
  end if;
end $$;

-- -------------------------------------------------------------------------------------------------------- mail

create function private.html(p text) returns text
language sql immutable set search_path = '' as $$
  select replace(replace(replace(replace(coalesce(p, ''), '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;')
$$;

-- Queue one mail, text and HTML built from the same parts; the outbox delivers it after commit.
-- Keys of p: kicker and number (small line and large number), heading, paragraphs [text], quote (another person's words),
-- button and link, after (small text below the button), why (why the reader gets this), unsubscribe (address).
create function private.mail(p_to text, p_subject text, p jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  sans constant text := 'font-family:''Source Sans 3'',''Segoe UI'',Roboto,Helvetica,Arial,sans-serif;';
  nl constant text := E'\n';
  product text := private.setting('product_name');
  support text := private.setting('support_email');
  kicker text := coalesce(p ->> 'kicker', 'Your request');
  button text := coalesce(p ->> 'button', 'Open');
  why text := concat_ws(' ', p ->> 'why', 'We never ask for your password or for money.');
  t text; h text; para text;
begin
  if not private.valid_email(p_to) then return; end if;

  t := product || nl || nl;
  h := '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    || '<meta name="color-scheme" content="light dark"><title>' || private.html(p_subject) || '</title><style>'
    || '@media (prefers-color-scheme: dark){.bg{background:#0f171b!important}.card{background:#182126!important;border-color:#2e393f!important}'
    || '.t{color:#e9eef0!important}.s{color:#c3ccd0!important}.q{background:#33270f!important}}</style></head>'
    || '<body class="bg" style="margin:0;padding:0;background:#ecf5f6">'
    || '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" class="bg" style="background:#ecf5f6"><tr><td align="center" style="padding:32px 16px">'
    || '<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px">'
    || '<tr><td style="' || sans || 'padding:0 4px 16px;font-size:20px;font-weight:700;color:#00576c">' || private.html(product) || '</td></tr>'
    || '<tr><td class="card" style="background:#ffffff;border:1px solid #d5dfe0;border-radius:12px;padding:32px 28px">';
  if p ? 'number' then
    t := t || kicker || ': ' || (p ->> 'number') || nl;
    h := h || '<p class="s" style="' || sans || 'margin:0;font-size:16px;line-height:24px;color:#3d4f56">' || private.html(kicker) || '</p>'
      || '<p class="t" style="' || sans || 'margin:0 0 20px;font-size:34px;line-height:40px;font-weight:700;color:#11232b">' || private.html(p ->> 'number') || '</p>';
  end if;
  t := t || upper(p ->> 'heading') || nl || nl;
  h := h || '<h1 class="t" style="' || sans || 'margin:0 0 12px;font-size:22px;line-height:29px;font-weight:700;color:#11232b">' || private.html(p ->> 'heading') || '</h1>';
  for para in select x from jsonb_array_elements_text(coalesce(p -> 'paragraphs', '[]'::jsonb)) x loop
    t := t || para || nl || nl;
    h := h || '<p class="t" style="' || sans || 'margin:0 0 16px;font-size:17px;line-height:27px;color:#11232b">' || replace(private.html(para), nl, '<br>') || '</p>';
  end loop;
  if p ->> 'quote' is not null then
    t := t || '"' || (p ->> 'quote') || '"' || nl || nl;
    h := h || '<p class="t q" style="' || sans || 'margin:0 0 16px;border:1px solid #c37614;background:#fef1da;border-radius:10px;padding:16px 18px;font-size:17px;line-height:27px;color:#1a2226">'
      || '&ldquo;' || replace(private.html(p ->> 'quote'), nl, '<br>') || '&rdquo;</p>';
  end if;
  if p ->> 'link' is not null then
    t := t || button || ':' || nl || (p ->> 'link') || nl || nl;
    h := h || '<p style="margin:24px 0 20px"><a href="' || private.html(p ->> 'link') || '" style="' || sans
      || 'display:inline-block;background:#00576c;border-radius:10px;padding:14px 26px;font-size:17px;line-height:22px;font-weight:600;color:#ffffff;text-decoration:none">'
      || private.html(button) || '</a></p>'
      || '<p class="s" style="' || sans || 'margin:0;font-size:15px;line-height:23px;color:#3d4f56">The button does not work? Copy this address into your browser:<br>'
      || '<a href="' || private.html(p ->> 'link') || '" style="color:#00566d;word-break:break-all">' || private.html(p ->> 'link') || '</a></p>';
  end if;
  if p ->> 'after' is not null then
    t := t || (p ->> 'after') || nl || nl;
    h := h || '<p class="s" style="' || sans || 'margin:24px 0 0;padding-top:16px;border-top:1px solid #d5dfe0;font-size:15px;line-height:23px;color:#3d4f56">' || private.html(p ->> 'after') || '</p>';
  end if;
  t := t || '--' || nl || why || nl;
  h := h || '</td></tr><tr><td class="s" style="' || sans || 'padding:20px 4px 8px;font-size:14px;line-height:21px;color:#57686e">' || private.html(why) || '<br>';
  if p ->> 'unsubscribe' is not null then
    t := t || 'Unsubscribe: ' || (p ->> 'unsubscribe') || nl;
    h := h || '<a href="' || private.html(p ->> 'unsubscribe') || '" style="color:#00566d">Unsubscribe</a><br>';
  end if;
  t := t || product || ', ' || support || nl;
  h := h || private.html(product) || ', ' || private.html(support) || '</td></tr></table></td></tr></table></body></html>';

  p_subject := regexp_replace(p_subject, '[[:cntrl:]]+', ' ', 'g');
  if p ->> 'unsubscribe' is null then
    perform ferrobase.send_mail(p_to, p_subject, t, h);
  else
    perform ferrobase.send_mail(p_to, p_subject, t, h, jsonb_build_object('List-Unsubscribe', '<' || (p ->> 'unsubscribe') || '>'));
  end if;
end $$;

-- Keeps updated_at true on every table that has one.
create function private.touch() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.updated_at := now();
  return new;
end $$;
