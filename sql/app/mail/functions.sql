-- Mail: finds its texts in the reader's language, makes typed text safe, and lays out all mails.

create or replace function private.html(p text) returns text
language sql immutable set search_path = '' as $$
  select replace(replace(replace(replace(coalesce(p, ''), '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;')
$$;

-- Breaks web addresses in a text, so that mail programs do not turn them into links: 'evil.com' becomes 'evil .com',
-- 'https://' becomes 'https: //'. Amounts, dates and names of documents stay as they are.
create or replace function private.unlinked(p text) returns text
language sql immutable set search_path = '' as $$
  select regexp_replace(
    regexp_replace(p, '(?<=[[:alnum:]-])([.\u3002\uff0e\uff61])(?!(?:pdf|docx?|jpe?g|png)(?![[:alnum:]/]|\.[[:alnum:]]))(?=[[:alpha:]]{2,})', ' \1', 'gi'),
    ':(?=//|\\\\)', ': ', 'g')
$$;

-- A name that one person typed and another reads in a mail: one short line without links.
create or replace function private.mail_name(p text, p_instead text) returns text
language sql immutable set search_path = '' as $$
  select case when p is null or p ~* '://|@|www\.|[a-z0-9]\.[a-z]{2,}' then p_instead else left(private.one_line(p), 80) end
$$;

-- Queues a mail; lay_out_mail documents the keys of p. as_typed (true) leaves links in the text.
create or replace function private.mail(p_to text, p_subject text, p jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if coalesce((p ->> 'as_typed')::boolean, false) then
    perform private.lay_out_mail(p_to, p_subject, p);
    return;
  end if;
  perform private.lay_out_mail(p_to, private.unlinked(private.one_line(p_subject)), p || jsonb_strip_nulls(jsonb_build_object(
    'heading', private.unlinked(private.one_line(p ->> 'heading')),
    'paragraphs', (select jsonb_agg(private.unlinked(private.one_line(x)) order by i)
      from jsonb_array_elements_text(p -> 'paragraphs') with ordinality t (x, i)),
    'quote', private.unlinked(p ->> 'quote'),
    'why', private.unlinked(private.one_line(p ->> 'why')))));
end $$;

-- ------------------------------------------------------------------------------------------------------------- languages

-- The language of the calling page: the first supported one in Accept-Language, which the app sets; English without
-- one.
create or replace function private.caller_language() returns text
language sql stable set search_path = '' as $$
  select coalesce((select left(btrim(tag), 2) from regexp_split_to_table(
      lower(nullif(current_setting('request.headers', true), '')::jsonb ->> 'accept-language'), ',') with ordinality t (tag, i)
    where btrim(tag) ~ '^(en|es|fr|ht)([-;]|$)' order by i limit 1), 'en')
$$;

-- The language of an address's account; without an account, the caller's.
create or replace function private.language_for(p_email text) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce((select p.language from public.profiles p where lower(p.email) = lower(p_email) and p.language is not null limit 1), private.caller_language())
$$;

-- The language of the person of a request: of their account, or of the page it was sent from.
create or replace function private.language_of(r public.requests) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce((select p.language from public.profiles p where p.id = r.user_id), r.language, 'en')
$$;

-- '$1250' in English, as everywhere; '1 250 $US' in French.
create or replace function private.money(p_language text, p_amount numeric) returns text
language sql immutable set search_path = '' as $$
  select case when p_language = 'es' then '$' || btrim(to_char(p_amount, case when p_amount = trunc(p_amount) then 'FM999,999,990' else 'FM999,999,990.00' end))
    when p_language in ('fr', 'ht') then translate(btrim(to_char(p_amount, case when p_amount = trunc(p_amount) then 'FM999,999,990' else 'FM999,999,990.00' end)),
      ',.', U&'\00a0,') || U&'\00a0$US'
    else private.amount_text(p_amount) end
$$;

create or replace function private.day(p_language text, p_day date) returns text
language sql immutable set search_path = '' as $$
  select case p_language
    when 'es' then concat_ws(' de ', extract(day from p_day)::text,
      (array['enero', 'febrero', 'marzo', 'abril', 'mayo', 'junio', 'julio', 'agosto', 'septiembre', 'octubre', 'noviembre', 'diciembre'])[extract(month from p_day)::int],
      extract(year from p_day)::text)
    when 'fr' then concat_ws(' ', case when extract(day from p_day) = 1 then '1er' else extract(day from p_day)::text end,
      (array['janvier', 'février', 'mars', 'avril', 'mai', 'juin', 'juillet', 'août', 'septembre', 'octobre', 'novembre', 'décembre'])[extract(month from p_day)::int],
      extract(year from p_day)::text)
    when 'ht' then concat_ws(' ', extract(day from p_day)::text,
      (array['janvye', 'fevriye', 'mas', 'avril', 'me', 'jen', 'jiyè', 'out', 'septanm', 'oktòb', 'novanm', 'desanm'])[extract(month from p_day)::int],
      extract(year from p_day)::text)
    else to_char(p_day, 'FMMonth FMDD, YYYY') end
$$;

-- A message of the catalogue (frontend/src/messages/en) with its parameters; null where there is none. `amount`, `date`,
-- `category` and `role` are localized, an empty `donor` is 'A donor'; `count` selects the plural form.
create or replace function private.say(p_language text, p_key text, p_params jsonb) returns text
language plpgsql immutable set search_path = '' as $$
declare
  words jsonb := private.words(p_language);
  message jsonb := coalesce(words -> p_key, private.words('en') -> p_key);
  params jsonb := p_params;
  n numeric;
begin
  if message is null then return null; end if;
  if jsonb_typeof(message) = 'object' then
    n := (params ->> 'count')::numeric;
    message := message -> case when n = 1 or (n = 0 and p_language in ('fr', 'ht')) then 'one' else 'other' end;
  end if;
  if params ? 'amount' then params := jsonb_set(params, '{amount}', coalesce(to_jsonb(private.money(p_language, (params ->> 'amount')::numeric)), 'null')); end if;
  if params ? 'date' then params := jsonb_set(params, '{date}', coalesce(to_jsonb(private.day(p_language, (params ->> 'date')::date)), 'null')); end if;
  if params ? 'category' then
    params := jsonb_set(params, '{category}', coalesce(words -> ('names.' || (params ->> 'category')), params -> 'category'));
  end if;
  if params ? 'role' then
    params := jsonb_set(params, '{role}', coalesce(words -> ('mail.role.' || (params ->> 'role')), params -> 'role'));
  end if;
  if params ->> 'donor' = '' then params := jsonb_set(params, '{donor}', coalesce(words -> 'notification.aDonor', '""')); end if;
  return (select string_agg(x[1] || case when x[2] is null then '' else coalesce(params ->> x[2], '{' || x[2] || '}') end, '' order by i)
    from regexp_matches(message #>> '{}', '([^{]*)(?:\{(\w+)\}|$)', 'g') with ordinality t (x, i));
end $$;

-- 'Hello Ada,': a name that was typed, never a link.
create or replace function private.greeting(p_name text, p_language text) returns text
language sql stable set search_path = '' as $$
  select case when private.mail_name(p_name, null) is null then private.say(p_language, 'mail.helloThere', '{}')
    else private.say(p_language, 'mail.hello', jsonb_build_object('name', private.mail_name(p_name, null))) end
$$;

-- Queues the catalogue's mail p_code in a language. p adds what the catalogue lacks (number, link, quote, unsubscribe)
-- or overrides it.
create or replace function private.mail_words(p_to text, p_language text, p_code text, p_params jsonb, p jsonb default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  spoken text := coalesce(p_language, 'en');
  key text := 'mail.' || p_code || '.';
begin
  perform private.mail(p_to, private.say(spoken, key || 'subject', p_params), jsonb_strip_nulls(jsonb_build_object(
    'language', spoken,
    'kicker', private.say(spoken, key || 'kicker', p_params),
    'heading', private.say(spoken, key || 'heading', p_params),
    'paragraphs', (select jsonb_agg(x order by i) from unnest(array[p_params ->> 'hello', private.say(spoken, key || 'p1', p_params),
      private.say(spoken, key || 'p2', p_params)]) with ordinality t (x, i) where x is not null),
    'button', private.say(spoken, key || 'button', p_params),
    'after', private.say(spoken, key || 'after', p_params),
    'why', private.say(spoken, key || 'why', p_params))) || p);
end $$;

-- --------------------------------------------------------------------------------------------------------------- layout

-- Queue one mail, text and HTML built from the same parts; the outbox delivers it after commit.
-- Keys of p: kicker and number (small line and large number), heading, paragraphs [text], quote (another person's words),
-- button and link, after (small text below the button), why (why the reader gets this), unsubscribe (address), language.
create or replace function private.lay_out_mail(p_to text, p_subject text, p jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  sans constant text := 'font-family:''Source Sans 3'',''Segoe UI'',Roboto,Helvetica,Arial,sans-serif;';
  nl constant text := E'\n';
  product text := private.setting('product_name');
  support text := private.setting('support_email');
  spoken text := coalesce(p ->> 'language', 'en');
  kicker text := coalesce(p ->> 'kicker', private.say(spoken, 'mail.yourRequest', '{}'));
  button text := coalesce(p ->> 'button', private.say(spoken, 'mail.open', '{}'));
  why text := concat_ws(' ', p ->> 'why', private.say(spoken, 'mail.never', '{}'));
  fails text := private.say(spoken, 'mail.buttonFails', '{}');
  unsubscribe text := private.say(spoken, 'mail.unsubscribe', '{}');
  t text; h text; para text;
begin
  if not private.valid_email(p_to) then return; end if;

  t := product || nl || nl;
  h := '<!doctype html><html lang="' || spoken || '"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
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
      || '<p class="s" style="' || sans || 'margin:0;font-size:15px;line-height:23px;color:#3d4f56">' || private.html(fails) || '<br>'
      || '<a href="' || private.html(p ->> 'link') || '" style="color:#00566d;word-break:break-all">' || private.html(p ->> 'link') || '</a></p>';
  end if;
  if p ->> 'after' is not null then
    t := t || (p ->> 'after') || nl || nl;
    h := h || '<p class="s" style="' || sans || 'margin:24px 0 0;padding-top:16px;border-top:1px solid #d5dfe0;font-size:15px;line-height:23px;color:#3d4f56">' || private.html(p ->> 'after') || '</p>';
  end if;
  t := t || '--' || nl || why || nl;
  h := h || '</td></tr><tr><td class="s" style="' || sans || 'padding:20px 4px 8px;font-size:14px;line-height:21px;color:#57686e">' || private.html(why) || '<br>';
  if p ->> 'unsubscribe' is not null then
    t := t || unsubscribe || ': ' || (p ->> 'unsubscribe') || nl;
    h := h || '<a href="' || private.html(p ->> 'unsubscribe') || '" style="color:#00566d">' || private.html(unsubscribe) || '</a><br>';
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

-- ------------------------------------------------------------------------------------------------------------ signing in

-- A part of a query, percent-encoded.
create or replace function private.query_part(p text) returns text
language sql immutable set search_path = '' as $$
  select string_agg(case when c ~ '^[A-Za-z0-9._~-]$' then c
    else upper(regexp_replace(encode(convert_to(c, 'UTF8'), 'hex'), '(..)', '%\1', 'g')) end, '' order by i)
  from regexp_split_to_table(p, '') with ordinality t (c, i)
$$;

-- The hook that the auth API calls for each of its mails (send-email): queues it in the language of the account. The language of an account
-- is the profile's, or the one that its sign-up named.
create or replace function private.sign_in_mail(event jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  person jsonb := event -> 'user';
  told jsonb := event -> 'email_data';
  kind text := told ->> 'email_action_type';
  spoken text := coalesce((select p.language from public.profiles p where p.id = (person ->> 'id')::uuid),
    case when person -> 'user_metadata' ->> 'language' in ('en', 'es', 'fr', 'ht') then person -> 'user_metadata' ->> 'language' end, 'en');
  link text := regexp_replace(told ->> 'site_url', '/auth/v1/?$', '') || '/auth/v1/verify?token={hash}&type=' || private.query_part(kind)
    || '&redirect_to=' || case when told ->> 'redirect_to' ~ '[&=#]' then private.query_part(told ->> 'redirect_to') else told ->> 'redirect_to' end;
  code text := case kind when 'signup' then 'confirm' when 'invite' then 'invited' when 'recovery' then 'recovery' when 'magiclink' then 'signInLink'
    when 'email_change' then 'addressChange' when 'reauthentication' then 'itIsYou' when 'password_changed_notification' then 'passwordChanged'
    when 'email_changed_notification' then 'addressChanged' when 'phone_changed_notification' then 'phoneChanged' else 'waysChanged' end;
  changed constant text := 'mail.accountChanged.';
  addresses jsonb := jsonb_build_object('old', person ->> 'email', 'new', person ->> 'new_email');
begin
  if kind = 'reauthentication' then
    perform private.mail_words(person ->> 'email', spoken, code, jsonb_build_object('code', told ->> 'token'), jsonb_build_object('number', told ->> 'token'));
  elsif kind = 'email_change' then
    -- A second hash is for the other confirmation, which goes to the previous address.
    perform private.mail_words(person ->> 'new_email', spoken, code, addresses,
      jsonb_build_object('link', replace(link, '{hash}', told ->> 'token_hash'), 'as_typed', true));
    if told ->> 'token_hash_new' <> '' then
      perform private.mail_words(person ->> 'email', spoken, code, addresses,
        jsonb_build_object('link', replace(link, '{hash}', told ->> 'token_hash_new'), 'as_typed', true));
    end if;
  elsif kind in ('signup', 'invite', 'recovery', 'magiclink') then
    perform private.mail_words(person ->> 'email', spoken, code, '{}', jsonb_build_object('link', replace(link, '{hash}', told ->> 'token_hash')));
  else
    perform private.mail_words(case kind when 'email_changed_notification' then told ->> 'old_email' else person ->> 'email' end, spoken, code, '{}',
      jsonb_build_object('heading', private.say(spoken, 'mail.' || code || '.subject', '{}'), 'kicker', private.say(spoken, changed || 'kicker', '{}'),
        'after', private.say(spoken, changed || 'after', '{}'), 'why', private.say(spoken, changed || 'why', '{}')));
  end if;
  return '{}';
end $$;
