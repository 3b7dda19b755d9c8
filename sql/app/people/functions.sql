-- People: the account's role and profile, its proved address, and requests sent with that address before the account
-- existed.

-- --------------------------------------------------------------------------------------------------------- the session

-- Everything the shell needs about the caller in one call; null when signed out.
create or replace function public.me() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare uid uuid := auth.uid(); result jsonb;
begin
  if uid is null then return null; end if;
  select jsonb_build_object(
    'user_id', p.id, 'email', p.email,
    'email_proved', exists (select 1 from private.account_addresses a where a.user_id = uid and a.proved_at is not null),
    'role', ur.role, 'nonprofit_role', ur.nonprofit_role,
    'profile', to_jsonb(p) || jsonb_build_object('age', public.age(p)),
    'selected_nonprofit', (select jsonb_build_object('id', n.id, 'name', n.name) from public.nonprofits n
      where n.id = p.selected_nonprofit_id and n.status = 'active'),
    'memberships', coalesce(ms.list, '[]'::jsonb), 'organization', ms.list -> 0,
    'unread_notifications', (select count(*) from public.notifications t where t.user_id = uid and not t.read),
    'drafts', (select count(*) from public.requests r where r.user_id = uid and r.status = 'draft'))
  into result
  from public.profiles p
  left join public.user_roles ur on ur.user_id = p.id
  left join lateral (
    select jsonb_agg(jsonb_build_object('nonprofit_id', n.id, 'name', n.name, 'role', m.role, 'is_active', m.is_active,
        'logo_path', n.logo_path, 'status', n.status)
      order by m.is_active and n.status <> 'closed' desc, m.role = 'admin' desc, m.created_at) as list
    from public.nonprofit_team_members m join public.nonprofits n on n.id = m.nonprofit_id
    where m.user_id = uid::text) ms on true
  where p.id = uid;
  if result is not null and (result #>> '{organization,is_active}' = 'false' or result #>> '{organization,status}' = 'closed') then
    result := jsonb_set(result, '{organization}', 'null');
  end if;
  return result;
end $$;

create or replace function public.my_profile() returns jsonb
language sql stable security definer set search_path = '' as $$
  select to_jsonb(p) || jsonb_build_object('age', public.age(p), 'id_type', i.id_type, 'id_number', i.id_number)
  from public.profiles p left join public.profile_identities i on i.user_id = p.id
  where p.id = auth.uid()
$$;

-- Profile Settings. Fields that the input leaves out stay as they are; the whole is checked by the rules of section 5.
create or replace function public.save_profile(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := private.require_user();
  errors jsonb := '{}';
  born date;
begin
  -- locked, so that a STOP or another page cannot come between reading and writing; the account first, as a change of its metadata does
  perform 1 from auth.users u where u.id = uid for no key update;
  select jsonb_build_object('first_name', p.first_name, 'middle_name', p.middle_name, 'last_name', p.last_name, 'phone', p.phone, 'bio', p.bio, 'birthday', p.birthday,
    'country', p.country, 'sms_consent', p.sms_consent, 'photo_path', p.photo_path, 'id_type', i.id_type, 'id_number', i.id_number) || coalesce(save_profile.input, '{}')
  into input from public.profiles p left join public.profile_identities i on i.user_id = p.id where p.id = uid for update of p;
  if length(coalesce(private.clean(input ->> 'first_name'), '')) < 2 then errors := errors || '{"first_name": "First name is required"}'; end if;
  if length(coalesce(private.clean(input ->> 'last_name'), '')) < 2 then errors := errors || '{"last_name": "Last name is required"}'; end if;
  if private.clean(input ->> 'birthday') is null then
    errors := errors || '{"birthday": "Birthday is required"}';
  else
    begin
      born := (input ->> 'birthday')::date;
      if born > current_date or born <= date '1900-01-01' then errors := errors || '{"birthday": "Please enter a valid birthday"}'; end if;
    exception when data_exception then errors := errors || '{"birthday": "Please enter a valid birthday"}';
    end;
  end if;
  if private.clean(input ->> 'country') is null then errors := errors || '{"country": "Country is required"}'; end if;
  if private.clean(input ->> 'id_type') is null then errors := errors || '{"id_type": "ID type is required"}'; end if;
  if private.clean(input ->> 'id_number') is null then errors := errors || '{"id_number": "ID number is required"}'; end if;
  if errors <> '{}' then
    perform private.fail(422, 'validation_failed', 'Please check the marked fields.', jsonb_build_object('fields', errors));
  end if;
  update public.profiles p set
    first_name = private.clean(input ->> 'first_name'), middle_name = private.clean(input ->> 'middle_name'), last_name = private.clean(input ->> 'last_name'),
    phone = private.clean(input ->> 'phone'), bio = private.clean(input ->> 'bio'), birthday = born,
    country = private.clean(input ->> 'country'), sms_consent = coalesce(input -> 'sms_consent' = 'true', false),
    photo_path = private.clean(input ->> 'photo_path')
  where p.id = uid;
  insert into public.profile_identities (user_id, id_type, id_number)
  values (uid, private.clean(input ->> 'id_type'), private.clean(input ->> 'id_number'))
  on conflict (user_id) do update set id_type = excluded.id_type, id_number = excluded.id_number;
  return public.my_profile();
end $$;

create or replace function public.select_nonprofit(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare uid uuid := private.require_user(); n public.nonprofits;
begin
  select * into n from public.nonprofits x where x.id = select_nonprofit.nonprofit_id and x.status = 'active';
  if not found then perform private.fail(404, 'organization_not_found', 'This nonprofit is not available.'); end if;
  update public.profiles set selected_nonprofit_id = n.id where id = uid;
  return jsonb_build_object('id', n.id, 'name', n.name);
end $$;

-- The person's language, used for mails.
create or replace function public.keep_language(language text) returns text
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare uid uuid := private.require_user();
begin
  if keep_language.language is null or keep_language.language not in ('en', 'es', 'fr', 'ht') then
    perform private.fail(422, 'validation_failed', 'Please choose a language from the list.', '{"fields": {"language": "Please choose a language from the list."}}');
  end if;
  update public.profiles set language = keep_language.language where id = uid;
  return keep_language.language;
end $$;

-- --------------------------------------------------------------------------------------------------------------- texts

-- A phone number in the form for texts (+12075550123); null if invalid. Without a country code it is a US number.
create or replace function private.sms_number(p text) returns text
language sql immutable set search_path = '' as $$
  select case when c ~ '^\+[1-9][0-9]{7,14}$' then c when c ~ '^00[1-9][0-9]{7,14}$' then '+' || substr(c, 3)
    when c ~ '^[2-9][0-9]{9}$' then '+1' || c when c ~ '^1[2-9][0-9]{9}$' then '+' || c end
  from (select regexp_replace(p, '[[:space:]()./-]', '', 'g')) x (c)
$$;

-- A new consent clears the STOP.
create or replace function private.on_text_consent() returns trigger
language plpgsql set search_path = '' as $$
begin
  if new.sms_consent and not old.sms_consent then new.sms_stopped_at := null; end if;
  return new;
end $$;

-- The person's requests follow their profile: all if the consent is withdrawn, those with the same number if it is
-- given.
create or replace function private.follow_text_consent() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if new.sms_consent then
    update public.requests r set sms_consent = true where r.user_id = new.id and not r.sms_consent and r.status in ('draft', 'pending', 'processing')
      and private.sms_number(r.phone) = private.sms_number(new.phone);
  else
    update public.requests r set sms_consent = false where r.user_id = new.id and r.sms_consent;
  end if;
  return null;
end $$;

-- A number sent STOP: ends all consents for it.
create or replace function private.on_text_stopped() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.profiles p set sms_consent = false, sms_stopped_at = new.stopped_at
  where p.sms_consent and (private.sms_number(p.phone) = new.number
    or p.id in (select r.user_id from public.requests r where r.sms_consent and private.sms_number(r.phone) = new.number));
  update public.requests r set sms_consent = false where r.sms_consent and private.sms_number(r.phone) = new.number;
  return null;
end $$;

-- Age in whole years, selectable as `age` on profiles.
create or replace function public.age(p public.profiles) returns int
language sql stable set search_path = '' as $$
  select extract(year from pg_catalog.age(current_date, p.birthday))::int
$$;

-- --------------------------------------------------------------------------------------------------- account lifecycle

-- A full name as a profile stores it; null if it is too short.
create or replace function private.full_name_of(p text) returns text
language sql immutable set search_path = '' as $$
  select case when length(n) >= 2 then n end from (select private.clean(left(private.clean(p), 200))) x (n)
$$;

-- A full name as the two fields of Profile Settings: the first word, and the rest. Null for what is too short.
create or replace function private.names_of(p_full_name text, out first_name text, out last_name text)
language sql immutable set search_path = '' as $$
  select case when length(f) >= 2 then f end, case when length(l) >= 2 then l end
  from (select private.clean(left(split_part(n, ' ', 1), 100)), case when strpos(n, ' ') > 0 then private.clean(left(private.clean(substr(n, strpos(n, ' '))), 100)) end
    from (select private.clean(p_full_name)) x (n)) y (f, l)
$$;

-- A profile has one name: whoever changes the full name changes first and last name, unless these are the same name, and the reverse.
create or replace function private.one_name() returns trigger
language plpgsql security definer set search_path = '' as $$
declare joined text := private.full_name_of(concat_ws(' ', new.first_name, new.last_name));
begin
  if (new.first_name, new.last_name) is distinct from (old.first_name, old.last_name) then
    new.full_name := coalesce(joined, new.full_name);
  elsif new.full_name is distinct from old.full_name and new.full_name is distinct from joined then
    select n.first_name, n.last_name into new.first_name, new.last_name from private.names_of(new.full_name) n;
  end if;
  return new;
end $$;

-- Somebody changes their profile: the account is locked first, as by a change of its metadata, which goes on to the profile.
create or replace function private.lock_account() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform 1 from auth.users u where u.id = auth.uid() for no key update;
  return null;
end $$;

-- Name and phone of a profile that is changed by itself go into the account's metadata, in which My Profile writes: a value that were
-- still there would not be a change.
create or replace function private.tell_account() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update auth.users u set raw_user_meta_data =
    case when jsonb_typeof(u.raw_user_meta_data) = 'object' then u.raw_user_meta_data - array['full_name', 'phone'] else '{}' end
      || jsonb_strip_nulls(jsonb_build_object('full_name', new.full_name, 'phone', new.phone))
  where u.id = new.id
    and (private.full_name_of(u.raw_user_meta_data ->> 'full_name') is distinct from new.full_name
      or left(private.clean(u.raw_user_meta_data ->> 'phone'), 40) is distinct from new.phone);
  return null;
end $$;

-- A new account: profile, role from the sign-up metadata (requester or nonprofit, requester by default), address not yet proved.
create or replace function private.on_account_created() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  wanted text := new.raw_user_meta_data ->> 'role';
  full_name text := private.full_name_of(new.raw_user_meta_data ->> 'full_name');
begin
  insert into public.profiles (id, email, full_name, first_name, last_name, language, phone)
  select new.id, new.email, full_name, n.first_name, n.last_name,
    case when new.raw_user_meta_data ->> 'language' in ('en', 'es', 'fr', 'ht') then new.raw_user_meta_data ->> 'language' end,
    left(coalesce(private.clean(new.raw_user_meta_data ->> 'phone'), nullif(new.phone, '')), 40)
  from private.names_of(full_name) n
  on conflict (id) do nothing;
  if wanted is null or wanted not in ('requester', 'nonprofit') then wanted := 'requester'; end if;
  insert into public.user_roles (user_id, role, nonprofit_role)
  values (new.id, wanted, case when wanted = 'nonprofit' then 'admin' end)
  on conflict (user_id) do nothing;
  if coalesce(new.email, '') <> '' then
    insert into private.account_addresses (user_id, email) values (new.id, private.folded(new.email)) on conflict (user_id) do nothing;
  end if;
  return new;
end $$;

-- Somebody signs in with a provider, or links one. Its name and number are merged into the metadata later in the same transaction.
create or replace function private.on_provider_answered() returns trigger
language plpgsql set search_path = '' as $$
begin
  perform set_config('private.provider_answered', new.user_id::text, true);
  return null;
end $$;

-- What a provider says replaces neither name nor number of an account: they are its owner's to change, and come back at every sign-in.
-- An account without a name takes the provider's; so does one whose address nobody has proved, as it goes to the one who signs in.
create or replace function private.keep_from_provider() returns trigger
language plpgsql set search_path = '' as $$
declare had jsonb;
begin
  if current_setting('private.provider_answered', true) = new.id::text and jsonb_typeof(new.raw_user_meta_data) = 'object'
    and (old.confirmed_at is not null or coalesce(old.email, '') = '') and old.raw_user_meta_data ->> 'full_name' <> '' then
    select jsonb_object_agg(f.key, f.value) into had from jsonb_each(old.raw_user_meta_data) f where f.key in ('full_name', 'phone');
    new.raw_user_meta_data := new.raw_user_meta_data - array['full_name', 'phone'] || had;
  end if;
  return new;
end $$;

-- The account changed: name and phone follow the metadata, in which My Profile writes them, unless the name is too short. A new address
-- is unproved again.
create or replace function private.on_account_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.profiles p set
    email = case when old.email is distinct from new.email then new.email else p.email end,
    full_name = case when new.raw_user_meta_data ->> 'full_name' is distinct from old.raw_user_meta_data ->> 'full_name'
      then coalesce(private.full_name_of(new.raw_user_meta_data ->> 'full_name'), p.full_name) else p.full_name end,
    phone = case when new.raw_user_meta_data ->> 'phone' is distinct from old.raw_user_meta_data ->> 'phone'
      then left(private.clean(new.raw_user_meta_data ->> 'phone'), 40) else p.phone end
  where p.id = new.id
    and (old.email is distinct from new.email or old.raw_user_meta_data is distinct from new.raw_user_meta_data);
  if private.folded(coalesce(old.email, '')) <> private.folded(coalesce(new.email, '')) then
    delete from private.account_addresses where user_id = new.id;
    if coalesce(new.email, '') <> '' then
      insert into private.account_addresses (user_id, email, since) values (new.id, private.folded(new.email), clock_timestamp());
    end if;
  end if;
  return new;
end $$;

-- A deleted account leaves its teams.
create or replace function private.on_account_deleted() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform set_config('private.account_leaving', old.id::text, true);
  update public.nonprofit_team_members set is_active = false where user_id = old.id::text;
  update public.nonprofit_team_members set user_id = 'pending' where user_id = old.id::text;
  perform set_config('private.account_leaving', '', true);
  return old;
end $$;

-- Drafts are deleted with their account; sent requests stay, without the account.
create or replace function private.on_account_deleted_drafts() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  delete from public.requests where user_id = old.id and status = 'draft';
  return old;
end $$;

-- The account id in a text; null if it is not a uuid.
create or replace function private.account_id(p text) returns uuid
language sql immutable set search_path = '' as $$
  select case when p ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p::uuid end
$$;

-- -------------------------------------------------------------------------------------------------------------- guards

-- nonprofit_role is only for the role nonprofit.
create or replace function private.normalise_user_role() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() and (new.role is null or new.role not in ('requester', 'nonprofit', 'donor')
    or new.nonprofit_role not in ('admin', 'manager', 'employee', 'volunteer')) then
    perform private.fail_fields('Please select a role', '{"role": "Please select a role"}');
  end if;
  if new.role <> 'nonprofit' then new.nonprofit_role := null; end if;
  new.updated_at := now();
  return new;
end $$;

-- A client may neither set an address nor clear required fields of the profile's forms.
create or replace function private.guard_profile() returns trigger
language plpgsql set search_path = '' as $$
declare errors jsonb := '{}'; was public.profiles;
begin
  if private.is_client() then
    if tg_op = 'UPDATE' then
      was := old;
      new.id := old.id; new.email := old.email; new.created_at := old.created_at;
    end if;
    if new.full_name is distinct from was.full_name and length(coalesce(btrim(new.full_name), '')) < 2 then errors := errors || '{"full_name": "Full name is required"}'; end if;
    if new.first_name is distinct from was.first_name and length(coalesce(btrim(new.first_name), '')) < 2 then errors := errors || '{"first_name": "First name is required"}'; end if;
    if new.last_name is distinct from was.last_name and length(coalesce(btrim(new.last_name), '')) < 2 then errors := errors || '{"last_name": "Last name is required"}'; end if;
    if new.country is distinct from was.country and coalesce(btrim(new.country), '') = '' then errors := errors || '{"country": "Country is required"}'; end if;
    if new.birthday is distinct from was.birthday and new.birthday is null then errors := errors || '{"birthday": "Birthday is required"}'; end if;
  end if;
  if new.birthday > current_date or new.birthday <= date '1900-01-01' then
    errors := errors || '{"birthday": "Please enter a valid birthday"}';
  end if;
  perform private.fail_fields('Please check the marked fields.', errors);
  return new;
end $$;

create or replace function private.guard_identity() returns trigger
language plpgsql set search_path = '' as $$
begin
  perform private.fail_fields('Please check the marked fields.',
    case when coalesce(btrim(new.id_type), '') = '' then '{"id_type": "ID type is required"}'::jsonb else '{}' end
    || case when coalesce(btrim(new.id_number), '') = '' then '{"id_number": "ID number is required"}'::jsonb else '{}' end);
  return new;
end $$;

-- ---------------------------------------------------------------------------------------------------- proved addresses

-- True when the caller proved the account's present address by a mailed code or link: our own code, or a session whose
-- `amr` names a mailed method later than the address became the account's. Records the second kind. Autoconfirm is not
-- a proof.
create or replace function private.address_is_proved() returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare a private.account_addresses; has_phone boolean;
begin
  select * into a from private.account_addresses where user_id = auth.uid();
  if not found then return false; end if;
  if a.proved_at is not null then return true; end if;
  select coalesce(u.phone, '') <> '' into has_phone from auth.users u where u.id = a.user_id;
  if exists (
    select 1 from jsonb_array_elements(
      case when jsonb_typeof(auth.jwt() -> 'amr') = 'array' then auth.jwt() -> 'amr' else '[]'::jsonb end) m
    where jsonb_typeof(m) = 'object'
      and (m ->> 'method' in ('magiclink', 'recovery', 'invite', 'email/signup')  -- under autoconfirm the old address alone confirms an email_change
           or (m ->> 'method' = 'otp' and not has_phone))  -- a texted code is called otp as well
      and coalesce(m ->> 'timestamp', '') ~ '^[0-9]{1,12}$'
      and to_timestamp((m ->> 'timestamp')::bigint) > a.since)
  then
    update private.account_addresses set proved_at = now() where user_id = a.user_id;
    return true;
  end if;
  return false;
end $$;

-- Mails a code that proves an address. The answer and the work are the same whether or not an account exists.
create or replace function public.send_address_code(email text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  mine text := (select a.email from private.account_addresses a where a.user_id = auth.uid());
  address text := private.folded(coalesce(private.clean(send_address_code.email), mine));
  network text := private.client_network();
  who text := coalesce('user:' || auth.uid(), 'net:' || network);
  code text := private.new_code();
begin
  if not private.valid_email(address) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"email": "Please enter a valid email address"}}');
  end if;
  if address = mine then
    perform private.require_rate('code-own:' || auth.uid(), 6, interval '1 hour');
  else
    perform private.require_rate('code-caller:' || network, 20, interval '1 hour');
    perform private.require_rate('code-pair:' || network || ':' || address, 5, interval '1 hour');
    perform private.require_rate('code-for:' || address, 15, interval '1 hour');
  end if;
  update private.address_codes c set expires_at = now() where c.email = address and c.asker = who and c.used_at is null and c.expires_at > now();
  insert into private.address_codes (email, asker, code_hash) values (address, who, private.hash_token(address || ':' || code));
  perform private.mail_words(address, private.caller_language(), 'ownCode', jsonb_build_object('code', code), jsonb_build_object('number', code));
  return '{"sent": true}';
end $$;

-- Checks a mailed code. A wrong code is not an error, so that the counted try is not rolled back.
create or replace function public.check_address_code(email text, code text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  address text := private.folded(private.clean(check_address_code.email));
  network text := private.client_network();
  c private.address_codes; token text; result jsonb; got record; own boolean;
begin
  own := exists (select 1 from private.account_addresses a where a.user_id = auth.uid() and a.email = address);
  if own then
    perform private.require_rate('check-own:' || auth.uid(), 40, interval '1 hour');
  else
    perform private.require_rate('check-code:' || network, 60, interval '1 hour');
  end if;
  update private.address_codes x set tries = x.tries + 1
  where x.id = (select y.id from private.address_codes y
                where y.email = address and y.asker in ('user:' || auth.uid(), 'net:' || network) and y.used_at is null and y.expires_at > now() and y.tries < 5
                order by y.created_at desc limit 1 for update)
  returning * into c;
  if c.id is null then return '{"ok": false, "reason": "expired", "tries_left": 0}'; end if;
  if c.code_hash <> private.hash_token(address || ':' || regexp_replace(coalesce(check_address_code.code, ''), '\D', '', 'g')) then
    return jsonb_build_object('ok', false, 'reason', case when c.tries >= 5 then 'expired' else 'wrong_code' end, 'tries_left', 5 - c.tries);
  end if;
  update private.address_codes x set used_at = now() where x.id = c.id;
  token := private.new_token();
  insert into private.address_proofs (token_hash, email) values (private.hash_token(token), address);
  if own then
    update private.account_addresses a set proved_at = coalesce(a.proved_at, now()) where a.user_id = auth.uid();
  end if;
  -- only accounts whose owner proved the address: anybody can sign up with another person's
  result := jsonb_build_object('ok', true, 'proof', token, 'matches', coalesce((
    select jsonb_agg(jsonb_build_object('id', p.id, 'fullName', coalesce(p.full_name, ''), 'email', p.email, 'matchType', 'email'))
    from public.profiles p join private.account_addresses a on a.user_id = p.id and a.email = address and a.proved_at is not null
    where lower(p.email) = lower(address) and private.folded(p.email) = address), '[]'::jsonb));
  if own then
    select * into got from private.claim_for(auth.uid(), address);
    result := result || jsonb_build_object('claimed_requests', got.requests, 'claimed_donations', got.donations,
      'sent_invitations', private.send_waiting_invitations(auth.uid()));
  end if;
  return result;
end $$;

-- Assigns requests sent while signed out to the account with the proved address.
create or replace function private.claim_for(p_user_id uuid, p_email text, out requests int, out donations int)
language plpgsql volatile security definer set search_path = '' as $$
begin
  with mine as (
    update public.requests r set user_id = p_user_id
    where r.user_id is null and lower(r.email) = lower(p_email) and private.folded(r.email) = private.folded(p_email) and r.status <> 'draft' returning r.id
  ), told as (
    insert into public.request_events (request_id, type, actor, actor_user_id) select id, 'claimed_by_account', 'requester', p_user_id from mine returning 1
  ) select count(*) into requests from told;
  with mine as (
    update public.donations d set donor_user_id = p_user_id
    where d.donor_user_id is null and lower(d.donor_email) = lower(p_email) and private.folded(d.donor_email) = private.folded(p_email) returning 1
  ) select count(*) into donations from mine;
  update public.donor_message_recipients x set donor_user_id = p_user_id
  where x.donor_user_id is null and lower(x.donor_email) = lower(p_email) and private.folded(x.donor_email) = private.folded(p_email);
end $$;

create or replace function public.claim_guest_requests() returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare uid uuid := private.require_user(); address text; got record;
begin
  if not private.address_is_proved() then
    return jsonb_build_object('proved', false, 'claimed_requests', 0, 'claimed_donations', 0);
  end if;
  select a.email into address from private.account_addresses a where a.user_id = uid;
  select * into got from private.claim_for(uid, address);
  perform private.send_waiting_invitations(uid);
  return jsonb_build_object('proved', true, 'claimed_requests', got.requests, 'claimed_donations', got.donations);
end $$;

-- ------------------------------------------------------------------------------------------------ export and deletion

-- All data about the caller in readable form. Files are named by their place in storage.
create or replace function public.my_data() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare uid uuid := private.require_user(); address text;
begin
  select private.folded(u.email) into address from auth.users u where u.id = uid;
  return jsonb_build_object(
    'exported_at', now(),
    'account', (select jsonb_build_object('id', u.id, 'email', u.email, 'phone', u.phone, 'created_at', u.created_at, 'last_sign_in_at', u.last_sign_in_at,
      'metadata', u.raw_user_meta_data) from auth.users u where u.id = uid),
    'identities', (select coalesce(jsonb_agg(jsonb_build_object('provider', i.provider, 'email', i.email,
        'name', coalesce(i.identity_data ->> 'full_name', i.identity_data ->> 'name'), 'created_at', i.created_at, 'last_sign_in_at', i.last_sign_in_at)
      order by i.created_at), '[]') from auth.identities i where i.user_id = uid),
    'sessions', (select coalesce(jsonb_agg(jsonb_build_object('created_at', s.created_at, 'last_refreshed_at', s.refreshed_at at time zone 'UTC', 'user_agent', s.user_agent,
        'ip', host(s.ip)) order by s.created_at), '[]') from auth.sessions s where s.user_id = uid),
    'second_factors', (select coalesce(jsonb_agg(jsonb_build_object('type', f.factor_type, 'name', f.friendly_name, 'phone', f.phone, 'status', f.status, 'created_at', f.created_at,
        'last_challenged_at', f.last_challenged_at) order by f.created_at), '[]') from auth.mfa_factors f where f.user_id = uid),
    'passkeys', (select coalesce(jsonb_agg(jsonb_build_object('name', k.friendly_name, 'created_at', k.created_at, 'last_used_at', k.last_used_at) order by k.created_at), '[]')
      from auth.webauthn_credentials k where k.user_id = uid),
    'authorized_applications', (select coalesce(jsonb_agg(jsonb_build_object('name', c.client_name, 'uri', c.client_uri, 'scopes', o.scopes, 'granted_at', o.granted_at,
        'revoked_at', o.revoked_at) order by o.granted_at), '[]')
      from auth.oauth_consents o join auth.oauth_clients c on c.id = o.client_id where o.user_id = uid),
    'role', (select to_jsonb(r) - 'user_id' from public.user_roles r where r.user_id = uid),
    'profile', (select to_jsonb(p) - 'id' from public.profiles p where p.id = uid),
    'identity_document', (select to_jsonb(i) - 'user_id' from public.profile_identities i where i.user_id = uid),
    'teams', (select coalesce(jsonb_agg(jsonb_build_object('nonprofit', n.name, 'role', m.role, 'is_active', m.is_active, 'joined_at', m.joined_at) order by m.created_at), '[]')
      from public.nonprofit_team_members m join public.nonprofits n on n.id = m.nonprofit_id where m.user_id = uid::text),
    'requests', (select coalesce(jsonb_agg(to_jsonb(r) - array['user_id', 'submit_key', 'search_text'] || jsonb_build_object(
        'sent_to', (select coalesce(jsonb_agg(jsonb_build_object('nonprofit', n.name, 'state', p.state, 'submitted_at', p.submitted_at, 'opened_at', p.opened_at)), '[]')
          from public.request_nonprofits p join public.nonprofits n on n.id = p.nonprofit_id where p.request_id = r.id),
        'documents', (select coalesce(jsonb_agg(jsonb_build_object('name', d.name, 'path', d.path, 'mime_type', d.mime_type, 'size_bytes', d.size_bytes, 'created_at', d.created_at)
          order by d.created_at), '[]') from public.request_documents d where d.request_id = r.id),
        'timeline', (select coalesce(jsonb_agg(jsonb_build_object('type', e.type, 'actor', e.actor, 'note', e.note, 'amount', e.amount, 'created_at', e.created_at)
          order by e.created_at), '[]') from public.request_events e where e.request_id = r.id and e.for_requester)) order by r.created_at), '[]')
      from public.requests r where r.user_id = uid),
    'notifications', (select coalesce(jsonb_agg(jsonb_build_object('title', n.title, 'message', n.message, 'read', n.read, 'date', n.date) order by n.date), '[]')
      from public.notifications n where n.user_id = uid),
    'donations', (select coalesce(jsonb_agg(jsonb_build_object('nonprofit', n.name, 'amount', d.amount, 'status', d.status, 'name', d.donor_name, 'email', d.donor_email,
        'note', d.note, 'pledged_at', d.pledged_at, 'received_at', d.received_at) order by d.pledged_at), '[]')
      from public.donations d join public.nonprofits n on n.id = d.nonprofit_id where d.donor_user_id = uid),
    'messages_received', (select coalesce(jsonb_agg(jsonb_build_object('nonprofit', n.name, 'subject', m.subject, 'message', m.message, 'date', m.created_at, 'read_at', x.read_at)
        order by m.created_at), '[]')
      from public.donor_message_recipients x join public.donor_messages m on m.id = x.message_id join public.nonprofits n on n.id = m.nonprofit_id where x.donor_user_id = uid),
    'messages_sent', (select coalesce(jsonb_agg(jsonb_build_object('subject', a.subject, 'message', a.message, 'date', a.created_at) order by a.created_at), '[]')
      from public.donor_message_replies a where a.donor_user_id = uid),
    'newsletters', (select coalesce(jsonb_agg(jsonb_build_object('list', s.list, 'since', s.created_at, 'unsubscribed_at', s.unsubscribed_at) order by s.created_at), '[]')
      from private.subscriptions s join private.account_addresses a on a.user_id = uid and a.email = address and a.proved_at is not null
      where private.folded(s.email) = address),
    'files', (select coalesce(jsonb_agg(jsonb_build_object('bucket', f.bucket, 'path', f.path, 'name', f.name) order by f.bucket, f.path), '[]') from (
      select 'request-documents' as bucket, d.path, r.id || '/' || d.name as name
      from public.request_documents d join public.requests r on r.id = d.request_id where r.user_id = uid
      union all
      select 'profile-photos', p.photo_path, p.photo_path from public.profiles p where p.id = uid and p.photo_path is not null) f));
end $$;

-- Removes a person's name from what staff were told: the pledge, the answer or the membership that it was about is gone. A request that was
-- handed over stays with its colleague, from the organization.
create or replace function private.forget_in_notifications(p_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare known record; readers uuid[];
begin
  for known in
    select n.id, n.name, array_agg(o.name) as names
    from (select m.nonprofit_id, private.member_name(m) from public.nonprofit_team_members m where m.user_id = p_user_id::text
      union select d.nonprofit_id, d.donor_name from public.donations d where d.donor_user_id = p_user_id
      union select a.nonprofit_id, a.from_name from public.donor_message_replies a where a.donor_user_id = p_user_id) o (nonprofit_id, name)
    join public.nonprofits n on n.id = o.nonprofit_id
    where o.name <> '' group by n.id
  loop
    readers := array(select private.account_id(m.user_id) from public.nonprofit_team_members m where m.nonprofit_id = known.id and m.user_id <> 'pending');
    delete from public.notifications t where t.user_id = any (readers)
      and (t.code in ('pledged', 'donorAnswered') and t.params ->> 'donor' = any (known.names) or t.code = 'joined' and t.params ->> 'name' = any (known.names));
    update public.notifications t set params = p.params, title = left(private.say('en', 'notification.handedOver.title', p.params), 200)
    from public.notifications f cross join lateral (select f.params || jsonb_build_object('name', known.name) as params) p
    where t.id = f.id and f.user_id = any (readers) and f.code = 'handedOver' and f.params ->> 'name' = any (known.names);
  end loop;
end $$;

-- Closes the caller's account. Granted requests stay in the books without personal data, open requests are withdrawn,
-- all others are deleted. email: the account's address, typed again.
create or replace function public.close_account(email text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  uid uuid := private.require_user();
  who auth.users;
  open_request text; kept text[]; gone text[]; sole text; proved boolean;
  spoken text := coalesce((select p.language from public.profiles p where p.id = uid), private.caller_language());
begin
  select * into who from auth.users u where u.id = uid for update;
  if who.id is null then perform private.fail(401, 'sign_in_required', 'Please log in to continue.'); end if;
  if private.folded(btrim(coalesce(close_account.email, ''))) <> private.folded(coalesce(who.email, '')) then
    perform private.fail_fields('This is not the email address of your account.', '{"email": "This is not the email address of your account."}');
  end if;
  -- of two last admins who leave at once, the second is told
  perform 1 from public.nonprofits n
  where n.id in (select m.nonprofit_id from public.nonprofit_team_members m where m.user_id = uid::text and m.role = 'admin' and m.is_active)
  order by n.id for update;
  select n.name into sole from public.nonprofit_team_members m join public.nonprofits n on n.id = m.nonprofit_id
  where m.user_id = uid::text and m.is_active and m.role = 'admin' and n.status <> 'closed'
    and not exists (select 1 from public.nonprofit_team_members o where o.nonprofit_id = m.nonprofit_id and o.id <> m.id and o.role = 'admin'
      and o.is_active and o.user_id <> 'pending') limit 1;
  if sole is not null then
    perform private.fail(409, 'last_admin', 'You are the only admin of ' || sole || '. Make someone else admin first, or close the organization.');
  end if;

  -- what was sent signed out, with this address
  proved := private.address_is_proved();
  if proved then
    perform private.claim_for(uid, private.folded(who.email));
  end if;
  for open_request in select r.id from public.requests r where r.user_id = uid and r.status in ('pending', 'processing') order by r.id loop
    perform public.withdraw_request(open_request);
    kept := kept || open_request;
  end loop;
  -- withdrawn requests, which staff were just notified of, stay in their lists without personal data until they expire
  kept := coalesce(kept, '{}') || array(select r.id from public.requests r where r.user_id = uid and r.status = 'approved');
  gone := array(select r.id from public.requests r where r.user_id = uid and r.id <> all (kept));
  perform private.erase_people(kept);
  perform private.remove_documents(gone);
  delete from public.requests r where r.id = any (gone);

  perform private.forget_in_notifications(uid);
  delete from public.donations d where d.donor_user_id = uid and d.status <> 'received';
  update public.donations d set donor_email = null, note = null where d.donor_user_id = uid;
  delete from public.donor_message_replies a where a.donor_user_id = uid;
  -- what ended stays, so that nobody writes there again
  delete from private.subscriptions s where proved and private.folded(s.email) = private.folded(who.email) and s.unsubscribed_at is null;
  delete from private.address_codes c where c.asker = 'user:' || uid or proved and c.email = private.folded(who.email);
  delete from private.address_proofs p where proved and p.email = private.folded(who.email);
  delete from private.sent_contents c where c.scope in ('request:' || uid, 'reply:' || uid);
  delete from public.nonprofit_team_members m where m.user_id = uid::text
    or proved and m.user_id = 'pending' and private.folded(m.email) = private.folded(who.email);
  perform set_config('storage.allow_delete_query', 'true', true);
  delete from storage.objects o where o.bucket_id = 'profile-photos' and starts_with(o.name, uid || '/');
  perform set_config('storage.allow_delete_query', 'false', true);
  delete from auth.users u where u.id = uid;

  perform private.mail_words(who.email, spoken, 'closed', '{}', jsonb_build_object('paragraphs', jsonb_build_array(private.say(spoken, 'mail.closed.p1', '{}'),
    private.say(spoken, case when cardinality(kept) > 0 then 'mail.closed.kept' else 'mail.closed.nothing' end, jsonb_build_object('count', cardinality(kept))))));
  return jsonb_build_object('kept_requests', cardinality(kept), 'erased_requests', cardinality(gone));
end $$;
