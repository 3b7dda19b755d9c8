-- The signed-in person: who am I, my profile, my proved address, my notifications.

-- Everything the shell needs about the caller in one call; null when signed out.
create function public.me() returns jsonb
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

create function public.my_profile() returns jsonb
language sql stable security definer set search_path = '' as $$
  select to_jsonb(p) || jsonb_build_object('age', public.age(p), 'id_type', i.id_type, 'id_number', i.id_number)
  from public.profiles p left join public.profile_identities i on i.user_id = p.id
  where p.id = auth.uid()
$$;

-- Profile Settings: the form as a whole, checked by the rules of section 5.
create function public.save_profile(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := private.require_user();
  errors jsonb := '{}';
  born date;
begin
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
    full_name = private.clean(input ->> 'first_name') || ' ' || private.clean(input ->> 'last_name'),
    phone = private.clean(input ->> 'phone'), bio = private.clean(input ->> 'bio'), birthday = born,
    country = private.clean(input ->> 'country'),
    photo_path = case when input ? 'photo_path' then private.clean(input ->> 'photo_path') else p.photo_path end
  where p.id = uid;
  insert into public.profile_identities (user_id, id_type, id_number)
  values (uid, private.clean(input ->> 'id_type'), private.clean(input ->> 'id_number'))
  on conflict (user_id) do update set id_type = excluded.id_type, id_number = excluded.id_number;
  return public.my_profile();
end $$;

create function public.select_nonprofit(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare uid uuid := private.require_user(); n public.nonprofits;
begin
  select * into n from public.nonprofits x where x.id = select_nonprofit.nonprofit_id and x.status = 'active';
  if not found then perform private.fail(404, 'organization_not_found', 'This nonprofit is not available.'); end if;
  update public.profiles set selected_nonprofit_id = n.id where id = uid;
  return jsonb_build_object('id', n.id, 'name', n.name);
end $$;

create function public.mark_all_notifications_read() returns int
language plpgsql volatile security definer set search_path = '' as $$
declare n int;
begin
  update public.notifications set read = true where user_id = private.require_user() and not read;
  get diagnostics n = row_count;
  return n;
end $$;

-- --------------------------------------------------------------------------------------------- proved addresses

create table private.address_codes (
  id uuid primary key default gen_random_uuid(),
  email text not null,
  code_hash text not null,
  tries int not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '15 minutes',
  used_at timestamptz
);
create index address_codes_email on private.address_codes (email, created_at desc);
create table private.address_proofs (
  token_hash text primary key,
  email text not null,
  expires_at timestamptz not null default now() + interval '1 hour'
);
alter table private.address_codes enable row level security;
alter table private.address_proofs enable row level security;

-- Hands over to an account what was sent signed out with its proved address.
create function private.claim_for(p_user_id uuid, p_email text, out requests int, out donations int)
language plpgsql volatile security definer set search_path = '' as $$
begin
  with mine as (
    update public.requests r set user_id = p_user_id
    where r.user_id is null and lower(r.email) = lower(p_email) and r.status <> 'draft' returning r.id
  ), told as (
    insert into public.request_events (request_id, type, actor, actor_user_id) select id, 'claimed_by_account', 'requester', p_user_id from mine returning 1
  ) select count(*) into requests from told;
  with mine as (
    update public.donations d set donor_user_id = p_user_id
    where d.donor_user_id is null and lower(d.donor_email) = lower(p_email) returning 1
  ) select count(*) into donations from mine;
  update public.donor_message_recipients x set donor_user_id = p_user_id
  where x.donor_user_id is null and lower(x.donor_email) = lower(p_email);
end $$;

create function public.claim_guest_requests() returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare uid uuid := private.require_user(); address text; got record;
begin
  if not private.address_is_proved() then
    return jsonb_build_object('proved', false, 'claimed_requests', 0, 'claimed_donations', 0);
  end if;
  select a.email into address from private.account_addresses a where a.user_id = uid;
  select * into got from private.claim_for(uid, address);
  return jsonb_build_object('proved', true, 'claimed_requests', got.requests, 'claimed_donations', got.donations);
end $$;

-- Mails a code that proves an address. The answer and the work are the same whether or not an account exists.
create function public.send_address_code(email text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  address text := lower(coalesce(private.clean(send_address_code.email), (select a.email from private.account_addresses a where a.user_id = auth.uid())));
  code text := private.new_code();
begin
  if not private.valid_email(address) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"email": "Please enter a valid email address"}}');
  end if;
  perform private.require_rate('code-address:' || private.client_address(), 20, interval '1 hour');
  perform private.require_rate('code:' || address, 5, interval '1 hour');
  update private.address_codes c set expires_at = now() where c.email = address and c.used_at is null and c.expires_at > now();
  delete from private.address_codes c where c.expires_at < now() - interval '2 days';
  insert into private.address_codes (email, code_hash) values (address, private.hash_token(address || ':' || code));
  perform private.mail(address, code || ' is your AidBridge code', jsonb_build_object(
    'kicker', 'Your code', 'number', code, 'heading', 'Type this code on the page you came from',
    'paragraphs', jsonb_build_array('It is good for 15 minutes. If you did not ask for it, you need not do anything.'),
    'why', 'You get this mail because someone typed this address on AidBridge.'));
  return '{"sent": true}';
end $$;

-- Checks a mailed code. A wrong code is an answer and not an error, so that the tries are counted.
create function public.check_address_code(email text, code text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  address text := lower(private.clean(check_address_code.email));
  c private.address_codes; token text; result jsonb; got record;
begin
  perform private.require_rate('check-code:' || private.client_address(), 60, interval '1 hour');
  update private.address_codes x set tries = x.tries + 1
  where x.id = (select y.id from private.address_codes y where y.email = address and y.used_at is null and y.expires_at > now() and y.tries < 5
                order by y.created_at desc limit 1 for update)
  returning * into c;
  if c.id is null then return '{"ok": false, "reason": "expired", "tries_left": 0}'; end if;
  if c.code_hash <> private.hash_token(address || ':' || regexp_replace(coalesce(check_address_code.code, ''), '\D', '', 'g')) then
    return jsonb_build_object('ok', false, 'reason', case when c.tries >= 5 then 'expired' else 'wrong_code' end, 'tries_left', 5 - c.tries);
  end if;
  update private.address_codes x set used_at = now() where x.id = c.id;
  token := private.new_token();
  delete from private.address_proofs p where p.expires_at < now();
  insert into private.address_proofs (token_hash, email) values (private.hash_token(token), address);
  result := jsonb_build_object('ok', true, 'proof', token, 'matches', coalesce((
    select jsonb_agg(jsonb_build_object('id', p.id, 'fullName', coalesce(p.full_name, ''), 'email', p.email, 'matchType', 'email'))
    from public.profiles p where lower(p.email) = address), '[]'::jsonb));
  if exists (select 1 from private.account_addresses a where a.user_id = auth.uid() and a.email = address) then
    update private.account_addresses a set proved_at = coalesce(a.proved_at, now()) where a.user_id = auth.uid();
    select * into got from private.claim_for(auth.uid(), address);
    result := result || jsonb_build_object('claimed_requests', got.requests, 'claimed_donations', got.donations);
  end if;
  return result;
end $$;
