-- Nonprofits, their team, invitations and help categories. Power over an organization comes only from an active row
-- in nonprofit_team_members that names the caller.

-- ------------------------------------------------------------------------------------------------ roles and membership

-- Organizations in which the caller is an active member with one of p_roles; closed ones only if requested.
create or replace function private.my_organizations(p_roles text[], p_closed_too boolean default false) returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select m.nonprofit_id from public.nonprofit_team_members m
  join public.nonprofits n on n.id = m.nonprofit_id
  where m.user_id = auth.uid()::text and m.is_active and m.role = any (p_roles)
    and (p_closed_too or n.status <> 'closed')
$$;

-- Admin, manager or employee: those who work on requests.
create or replace function private.my_staff_organizations() returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select private.my_organizations(array['admin', 'manager', 'employee'], true)
$$;

create or replace function private.my_managed_organizations() returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select private.my_organizations(array['admin', 'manager'], true)
$$;

create or replace function private.my_admin_organizations() returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select private.my_organizations(array['admin'], true)
$$;

-- True for an account that is staff (admin, manager, employee) of any organization.
create or replace function private.is_staff_somewhere() returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from private.my_staff_organizations())
$$;

-- The caller's active member row with one of p_roles, or an error that says what is wrong:
-- 401 sign_in_required, 404 organization_not_found, 403 not_a_member, 403 role_not_allowed, 409 organization_closed.
create or replace function private.require_member(p_nonprofit_id text, p_roles text[]) returns public.nonprofit_team_members
language plpgsql stable security definer set search_path = '' as $$
declare m public.nonprofit_team_members; org_status text;
begin
  perform private.require_user();
  select status into org_status from public.nonprofits where id = p_nonprofit_id;
  if not found then
    perform private.fail(404, 'organization_not_found', 'Please complete your organization setup first');
  end if;
  select * into m from public.nonprofit_team_members
  where nonprofit_id = p_nonprofit_id and user_id = auth.uid()::text and is_active;
  if not found then
    perform private.fail(403, 'not_a_member', 'You are not an active member of this organization. Ask your admin for an invitation.');
  end if;
  if m.role <> all (p_roles) then
    perform private.fail(403, 'role_not_allowed', case
      when p_roles = array['admin'] then 'Only administrators can do this.'
      else 'Only managers and admins can do this.' end, jsonb_build_object('role', m.role, 'needed', to_jsonb(p_roles)));
  end if;
  if org_status = 'closed' then
    perform private.fail(409, 'organization_closed', 'This organization is closed.');
  end if;
  return m;
end $$;

-- Keeps the organization from being closed until the end of the transaction. Called before a request is locked, because
-- closing locks the organization first and then its requests.
create or replace function private.keep_open(p_nonprofit_id text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform 1 from public.nonprofits n where n.id = p_nonprofit_id for key share;
end $$;

-- -------------------------------------------------------------------------------------------------------------- guards

-- A client can create an organization only for itself and cannot choose its state; onboarding's fields are all
-- required.
create or replace function private.guard_nonprofit() returns trigger
language plpgsql set search_path = '' as $$
declare errors jsonb := '{}'; f text;
begin
  if private.is_client() then
    if tg_op = 'UPDATE' then
      if new.id <> old.id or new.admin_user_id is distinct from old.admin_user_id or new.status <> old.status then
        perform private.fail(403, 'not_changeable', 'This part of the organization cannot be changed here.');
      end if;
      if old.status = 'closed' then
        perform private.fail(409, 'organization_closed', 'This organization is closed.');
      end if;
      new.created_at := old.created_at; new.closed_at := old.closed_at;
    else
      new.id := private.client_id(new.id);
      new.admin_user_id := coalesce(new.admin_user_id, auth.uid());
      new.status := case when private.setting('nonprofit_approval_required') = 'true' then 'awaiting_approval' else 'active' end;
      new.created_at := now(); new.closed_at := null;
    end if;
    foreach f in array array['name', 'legal_status', 'registration_number', 'employee_count', 'mission'] loop
      if private.clean(to_jsonb(new) ->> f) is null then errors := errors || jsonb_build_object(f, 'Please complete all required fields'); end if;
    end loop;
    perform private.fail_fields('Please complete all required fields', errors);
    if new.email is not null and not private.valid_email(new.email) then
      perform private.fail_fields('Please check the marked fields.', '{"email": "Please enter a valid email address"}');
    end if;
  end if;
  if tg_op = 'INSERT' or new.helps_with is distinct from old.helps_with then
    new.helps_with := array(select c.id from public.categories c where c.id = any (new.helps_with) and c.nonprofit_id is null order by 1);
  end if;
  if tg_op = 'INSERT' or new.service_area is distinct from old.service_area then
    new.service_area := array(select p from unnest(new.service_area) with ordinality t (x, i), private.clean(x) p where p is not null group by p order by min(i));
  end if;
  if tg_op = 'UPDATE' then new.updated_at := now(); end if;
  return new;
end $$;

-- The founder becomes its first admin, in the team and on the account.
create or replace function private.on_nonprofit_created() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into public.nonprofit_settings (nonprofit_id) values (new.id) on conflict do nothing;
  if new.admin_user_id is not null then
    insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role, user_id, joined_at)
    select new.id, coalesce(p.email, new.email, new.admin_user_id || '@account.invalid'), coalesce(p.full_name, ''), 'admin', new.admin_user_id::text, now()
    from public.profiles p where p.id = new.admin_user_id
    on conflict do nothing;
    insert into public.user_roles (user_id, role, nonprofit_role) values (new.admin_user_id, 'nonprofit', 'admin')
    on conflict (user_id) do update set role = 'nonprofit', nonprofit_role = 'admin';
  end if;
  return new;
end $$;

-- An added member is always 'pending' at first: only accepting the mailed invitation links an account.
create or replace function private.guard_team_member() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.email := btrim(new.email);
  new.full_name := coalesce(private.clean(new.full_name), '');
  if private.is_client() then
    if tg_op = 'UPDATE' then
      new.id := old.id; new.nonprofit_id := old.nonprofit_id; new.user_id := old.user_id; new.email := old.email;
      new.created_at := old.created_at; new.invited_at := old.invited_at; new.joined_at := old.joined_at;
    else
      new.user_id := 'pending'; new.is_active := true; new.invited_at := null; new.joined_at := null; new.created_at := now();
    end if;
    perform private.fail_fields('Please fill in all required fields.', jsonb_strip_nulls(jsonb_build_object(
      'full_name', case when new.full_name = '' and (tg_op = 'INSERT' or old.full_name <> '') then 'Please fill in all required fields.' end,
      'email', case when private.clean(new.email) is null then 'Please fill in all required fields.' end,
      'role', case when new.role is null or new.role not in ('admin', 'manager', 'employee', 'volunteer') then 'Please fill in all required fields.' end)));
    if tg_op = 'INSERT' and not private.valid_email(new.email) then
      perform private.fail_fields('Please enter a valid email address', '{"email": "Please enter a valid email address"}');
    end if;
  end if;
  if tg_op = 'UPDATE' then new.updated_at := now(); end if;
  return new;
end $$;

-- `keep_an_admin` needs the organization. It is locked before the parts of requests that the foreign key takes from the member,
-- because opening or deciding a request locks them in this order, too.
create or replace function private.hold_organization_of_admin() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform 1 from public.nonprofits n where n.id = old.nonprofit_id for update;
  return old;
end $$;

-- An open organization must keep one active admin with an account. The founder's position passes to the next admin who has
-- none elsewhere, or to nobody.
create or replace function private.keep_an_admin() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if old.role <> 'admin' or not old.is_active or old.user_id = 'pending' then return null; end if;
  if tg_op = 'UPDATE' and new.role = 'admin' and new.is_active and new.user_id = old.user_id then return null; end if;
  perform 1 from public.nonprofits n where n.id = old.nonprofit_id and n.status <> 'closed' for update;
  if not found then return null; end if;
  if not exists (select 1 from public.nonprofit_team_members m
    where m.nonprofit_id = old.nonprofit_id and m.role = 'admin' and m.is_active and m.user_id <> 'pending' and m.user_id <> old.user_id) then
    if coalesce(current_setting('private.account_leaving', true), '') = old.user_id then return null; end if;
    perform private.fail(409, 'last_admin', 'An organization needs at least one active admin. Make someone else admin first, or close the organization.');
  end if;
  update public.nonprofits n set admin_user_id = (
    select m.user_id::uuid from public.nonprofit_team_members m
    where m.nonprofit_id = n.id and m.role = 'admin' and m.is_active and m.user_id <> 'pending' and m.user_id <> old.user_id
      and not exists (select 1 from public.nonprofits o where o.admin_user_id::text = m.user_id)
    order by m.created_at limit 1)
  where n.id = old.nonprofit_id and n.admin_user_id::text = old.user_id;
  return null;
end $$;

-- A member's new role shows on the account as well.
create or replace function private.on_team_role_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.user_roles u set nonprofit_role = new.role where u.user_id = private.account_id(new.user_id) and u.role = 'nonprofit';
  return null;
end $$;

create or replace function private.guard_category() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.name := private.clean(new.name);
  if new.name is null then
    perform private.fail(422, 'validation_failed', 'Category name required',
      jsonb_build_object('fields', jsonb_build_object('name', 'Category name required')));
  end if;
  new.description := private.clean(new.description);
  return new;
end $$;

-- --------------------------------------------------------------------------------------------------------- invitations

-- The platform's own inserts may invite at once; a person must have proved an address.
create or replace function private.may_invite() returns boolean
language sql volatile security definer set search_path = '' as $$
  select auth.uid() is null or private.address_is_proved()
$$;

-- A fresh invitation for a pending member: older ones end, the mail goes out.
create or replace function private.send_invitation(p_member public.nonprofit_team_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare token text := private.new_token(); org text; spoken text := private.language_for(p_member.email);
begin
  select private.mail_name(name, private.say(spoken, 'mail.aNonprofit', '{}')) into org from public.nonprofits where id = p_member.nonprofit_id;
  update private.team_invitations set expires_at = now() where member_id = p_member.id and accepted_at is null and expires_at > now();
  insert into private.team_invitations (member_id, token_hash, email, invited_by)
  values (p_member.id, private.hash_token(token), private.folded(p_member.email), auth.uid());
  update public.nonprofit_team_members set invited_at = now() where id = p_member.id;
  perform private.mail_words(p_member.email, spoken, 'invitation', jsonb_build_object('nonprofit', org, 'role', p_member.role,
      'hello', private.greeting(private.clean(p_member.full_name), spoken)),
    jsonb_build_object('link', private.site_link('/team-invitation?token=' || token)));
end $$;

-- Counts an invitation against each limit and sends it.
create or replace function private.invite(p_member public.nonprofit_team_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare founded timestamptz;
begin
  select n.created_at into founded from public.nonprofits n where n.id = p_member.nonprofit_id;
  perform private.require_rate('invite:' || p_member.nonprofit_id, 20, interval '1 hour');
  perform private.require_rate('invite-day:' || p_member.nonprofit_id, case when founded > now() - interval '1 day' then 20 else 50 end, interval '1 day');
  perform private.require_rate('invite-by:' || coalesce(auth.uid()::text, 'server'), 50, interval '1 day');
  perform private.require_rate('invite-for:' || lower(p_member.email), 5, interval '1 day');
  perform private.send_invitation(p_member);
end $$;

create or replace function private.on_team_member_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if private.may_invite() then
    perform private.invite(new);
  else
    perform private.require_rate('member:' || new.nonprofit_id, 50, interval '1 day');
  end if;
  return null;
end $$;

-- Sends the invitations that waited for this admin's proof. Stops at a limit; the rest is sent by 'Send again'.
create or replace function private.send_waiting_invitations(p_user_id uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare m public.nonprofit_team_members; sent int := 0;
begin
  for m in select x.* from public.nonprofit_team_members x join public.nonprofits n on n.id = x.nonprofit_id and n.status <> 'closed'
    where x.user_id = 'pending' and x.is_active and x.invited_at is null
      and exists (select 1 from public.nonprofit_team_members a where a.nonprofit_id = x.nonprofit_id and a.user_id = p_user_id::text and a.is_active and a.role = 'admin')
    order by x.created_at for update of x
  loop
    begin
      perform private.invite(m);
      sent := sent + 1;
    exception when sqlstate 'PT429' then exit;
    end;
  end loop;
  return sent;
end $$;

-- A second press of the button sends nothing: it would end the link in the mail that has just been sent.
create or replace function public.resend_team_invitation(member_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare m public.nonprofit_team_members;
begin
  select * into m from public.nonprofit_team_members x where x.id = resend_team_invitation.member_id;
  perform private.require_member(m.nonprofit_id, array['admin']);
  select * into m from public.nonprofit_team_members x where x.id = m.id for update;
  if m.user_id <> 'pending' then perform private.fail(409, 'already_joined', 'This person has already joined.'); end if;
  if not m.is_active then perform private.fail(409, 'member_inactive', 'This member is inactive. Activate them first.'); end if;
  if not private.may_invite() then
    perform private.fail(403, 'address_unproved', 'Confirm your own email address first. Then the invitation goes out.');
  end if;
  if m.invited_at > now() - interval '10 seconds' then return '{"sent": true}'; end if;
  perform private.invite(m);
  return '{"sent": true}';
end $$;

-- Details of an invitation before it is accepted. The token is the secret; the address is masked.
create or replace function public.team_invitation(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare i private.team_invitations; m public.nonprofit_team_members; n public.nonprofits;
begin
  perform private.require_rate('invitation:' || private.client_network(), 60, interval '1 minute');
  select * into i from private.team_invitations x where x.token_hash = private.hash_token(team_invitation.token);
  if not found then return '{"state": "unknown"}'; end if;
  select * into m from public.nonprofit_team_members x where x.id = i.member_id;
  select * into n from public.nonprofits x where x.id = m.nonprofit_id;
  return jsonb_build_object(
    'state', case when i.accepted_at is not null then 'accepted' when i.expires_at <= now() or n.status = 'closed' or not m.is_active then 'expired' else 'open' end,
    'organization', n.name, 'role', m.role,
    'email', left(i.email, 1) || '•••@' || split_part(i.email, '@', 2),
    'for_you', case when auth.uid() is not null then exists (select 1 from private.account_addresses a where a.user_id = auth.uid() and a.email = i.email) end);
end $$;

-- Links the caller's account. Holding the mailed token proves the address; the account must have that address.
create or replace function public.accept_team_invitation(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare uid uuid := private.require_user(); i private.team_invitations; m public.nonprofit_team_members; n public.nonprofits;
begin
  select * into i from private.team_invitations x where x.token_hash = private.hash_token(accept_team_invitation.token) for update;
  if not found then perform private.fail(404, 'invitation_unknown', 'This invitation does not exist. Ask your admin for a new one.'); end if;
  select * into m from public.nonprofit_team_members x where x.id = i.member_id for update;
  select * into n from public.nonprofits x where x.id = m.nonprofit_id;
  if not exists (select 1 from private.account_addresses a where a.user_id = uid and a.email = i.email) then
    perform private.fail(403, 'invitation_foreign', 'This invitation is for another email address. Sign in with that address to accept it.');
  end if;
  if i.accepted_at is not null and m.user_id = uid::text then
    return jsonb_build_object('nonprofit_id', n.id, 'name', n.name, 'role', m.role);
  end if;
  if i.accepted_at is not null or i.expires_at <= now() or m.user_id <> 'pending' or not m.is_active then
    perform private.fail(410, 'invitation_expired', 'This invitation has expired. Ask your admin for a new one.');
  end if;
  if n.status = 'closed' then perform private.fail(409, 'organization_closed', 'This organization is closed.'); end if;
  if exists (select 1 from public.nonprofit_team_members x where x.nonprofit_id = n.id and x.user_id = uid::text) then
    perform private.fail(409, 'already_joined', 'You are already a member of this organization.');
  end if;
  update private.team_invitations x set accepted_at = now() where x.id = i.id;
  update private.account_addresses a set proved_at = coalesce(a.proved_at, now()) where a.user_id = uid;
  update public.nonprofit_team_members x set user_id = uid::text, joined_at = now(),
    full_name = case when x.full_name = '' then coalesce((select p.full_name from public.profiles p where p.id = uid), '') else x.full_name end
  where x.id = m.id;
  insert into public.user_roles (user_id, role, nonprofit_role) values (uid, 'nonprofit', m.role)
  on conflict (user_id) do update set role = 'nonprofit', nonprofit_role = excluded.nonprofit_role;
  perform private.notify_staff(n.id, 'success', 'joined', jsonb_build_object('name', coalesce(nullif(m.full_name, ''), m.email)), '/nonprofit-team', null, array['admin'], uid);
  return jsonb_build_object('nonprofit_id', n.id, 'name', n.name, 'role', m.role);
end $$;

-- ---------------------------------------------------------------------------------------------------- the organization

-- The name of an organization, for those who know its id from a row that they may read.
create or replace function private.organization_name(p_id text) returns text
language sql stable security definer set search_path = '' as $$
  select n.name from public.nonprofits n where n.id = p_id
$$;

create or replace function public.create_organization(input jsonb) returns public.nonprofits
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := private.require_user(); n public.nonprofits; errors jsonb := '{}'; f text; c jsonb; saved int := 0;
begin
  foreach f in array array['name', 'legal_status', 'registration_number', 'employee_count', 'mission'] loop
    if private.clean(input ->> f) is null then errors := errors || jsonb_build_object(f, 'Please complete all required fields'); end if;
  end loop;
  if not errors ? 'employee_count' and input ->> 'employee_count' !~ '^\s*[0-9]{1,6}\s*$' then
    errors := errors || '{"employee_count": "Please enter a whole number"}';
  end if;
  if private.clean(input ->> 'email') is not null and not private.valid_email(private.clean(input ->> 'email')) then
    errors := errors || '{"email": "Please enter a valid email address"}';
  end if;
  if errors <> '{}' then
    perform private.fail(422, 'validation_failed', 'Please complete all required fields', jsonb_build_object('fields', errors));
  end if;
  perform pg_advisory_xact_lock(hashtextextended('organization:' || uid, 0));
  if exists (select 1 from public.nonprofits x where x.admin_user_id = uid and x.status <> 'closed') then
    perform private.fail(409, 'one_organization', 'You already have an organization.');
  end if;
  update public.nonprofits x set admin_user_id = null where x.admin_user_id = uid and x.status = 'closed';
  insert into public.nonprofits (name, legal_status, registration_number, employee_count, mission, admin_user_id, status, email, location)
  values (private.clean(input ->> 'name'), private.clean(input ->> 'legal_status'), private.clean(input ->> 'registration_number'),
    (input ->> 'employee_count')::int, private.clean(input ->> 'mission'), uid,
    case when private.setting('nonprofit_approval_required') = 'true' then 'awaiting_approval' else 'active' end,
    private.clean(input ->> 'email'), private.clean(input ->> 'location'))
  returning * into n;
  for c in select x from jsonb_array_elements(case when jsonb_typeof(input -> 'categories') = 'array' then input -> 'categories' else '[]'::jsonb end) x loop
    if saved < 2 and private.clean(c ->> 'name') is not null and private.clean(c ->> 'description') is not null then
      insert into public.categories (name, description, nonprofit_id) values (left(private.clean(c ->> 'name'), 100), left(private.clean(c ->> 'description'), 1000), n.id)
      on conflict do nothing;
      saved := saved + 1;
    end if;
  end loop;
  return n;
end $$;

-- Saves changed settings of an organization, all or nothing. `seen`: the values that the page showed; if a colleague
-- has changed one meanwhile, nothing is saved and 409 `changed_meanwhile` names it.
create or replace function public.save_organization(nonprofit_id text, changes jsonb, seen jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := save_organization.nonprofit_id; org public.nonprofits; now_ jsonb; other text[]; above text := save_organization.changes ->> 'second_approval_above';
  fields constant text[] := array['name', 'legal_status', 'registration_number', 'employee_count', 'mission', 'description', 'email', 'phone', 'website', 'location',
    'average_response_time_days', 'helps_with', 'service_area', 'second_approval_above'];
begin
  perform private.require_member(np, array['admin']);
  select * into org from public.nonprofits x where x.id = np for update;
  now_ := to_jsonb(org) || jsonb_build_object('second_approval_above', (select s.second_approval_above from public.nonprofit_settings s where s.nonprofit_id = np));
  select array_agg(k order by k) into other from jsonb_object_keys(save_organization.changes) k
  where k = any (fields) and now_ -> k is distinct from save_organization.seen -> k and now_ -> k is distinct from save_organization.changes -> k;
  if other is not null then
    perform private.fail(409, 'changed_meanwhile', 'A colleague changed the same settings meanwhile. Nothing was saved. Look at their version, then save yours again.',
      jsonb_build_object('changed', to_jsonb(other)));
  end if;
  org := jsonb_populate_record(org, (select coalesce(jsonb_object_agg(k, v), '{}') from jsonb_each(save_organization.changes) t (k, v) where k = any (fields)));
  update public.nonprofits x set name = private.clean(org.name), legal_status = org.legal_status, registration_number = org.registration_number, employee_count = org.employee_count,
    mission = org.mission, description = org.description, email = org.email, phone = org.phone, website = org.website, location = org.location,
    average_response_time_days = org.average_response_time_days, helps_with = coalesce(org.helps_with, '{}'), service_area = coalesce(org.service_area, '{}')
  where x.id = np;
  if save_organization.changes ? 'second_approval_above' then perform public.set_second_approval(np, above::numeric); end if;
  return '{"saved": true}';
end $$;

create or replace function public.set_second_approval(nonprofit_id text, above numeric default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_member(set_second_approval.nonprofit_id, array['admin']);
  if set_second_approval.above is not null and set_second_approval.above <> 0 then perform private.require_amount(set_second_approval.above); end if;
  insert into public.nonprofit_settings (nonprofit_id, second_approval_above) values (set_second_approval.nonprofit_id, set_second_approval.above)
  on conflict (nonprofit_id) do update set second_approval_above = excluded.second_approval_above;
  return jsonb_build_object('second_approval_above', set_second_approval.above);
end $$;

create or replace function public.leave_organization(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare m public.nonprofit_team_members := private.require_member(leave_organization.nonprofit_id, array['admin', 'manager', 'employee', 'volunteer']);
begin
  delete from public.nonprofit_team_members x where x.id = m.id;
  update public.nonprofits n set admin_user_id = null where n.id = m.nonprofit_id and n.admin_user_id::text = m.user_id;
  return '{"left": true}';
end $$;

-- Closes the organization. Its open requests go back to the other nonprofits or end with a clear reason.
create or replace function public.close_organization(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := close_organization.nonprofit_id; id_ text; r public.requests; p public.request_nonprofits; n int := 0;
begin
  perform private.require_member(np, array['admin']);
  perform 1 from public.nonprofits x where x.id = np for update;
  perform private.require_member(np, array['admin']);  -- it may have closed while we waited
  for id_ in select x.request_id from public.request_nonprofits x where x.nonprofit_id = np and x.state in ('open', 'claimed', 'taken') order by 1 loop
    select * into r from public.requests x where x.id = id_ for update;
    select * into p from public.request_nonprofits x where x.request_id = id_ and x.nonprofit_id = np for update;
    if r.status in ('pending', 'processing') and p.state in ('open', 'claimed') then
      perform private.end_part(r, p, 'closed', 'The organization closed before it could decide.', 'organization_closed');
      n := n + 1;
    elsif r.status in ('pending', 'processing') and p.state = 'taken' then
      update public.request_nonprofits x set state = 'closed', acted_at = now() where x.request_id = id_ and x.nonprofit_id = np;
    end if;
  end loop;
  update public.nonprofits x set status = 'closed', closed_at = now() where x.id = np;
  update public.profiles x set selected_nonprofit_id = null where x.selected_nonprofit_id = np;
  return jsonb_build_object('status', 'closed', 'requests_released', n);
end $$;

-- The parts of a place as people write it: 'Portland,  ME' is 'portland' and 'me'.
create or replace function private.place_parts(p_place text) returns text[]
language sql immutable parallel safe set search_path = '' as $$
  select coalesce(array_agg(part order by i), '{}')
  from (select regexp_replace(lower(btrim(x)), '\s+', ' ', 'g'), i from unnest(string_to_array(left(p_place, 200), ',')) with ordinality t (x, i)) t (part, i)
  where part <> ''
$$;

-- Whether the area p_area covers p_place. 'Maine' covers 'Portland, Maine'; if both name more than the town, the rest
-- must be the same.
create or replace function private.covers(p_area text, p_place text) returns boolean
language sql immutable parallel safe set search_path = '' as $$
  select coalesce(area[1] = any (place) and (cardinality(area) < 2 or cardinality(place) < 2 or area[cardinality(area)] = place[cardinality(place)]), false)
  from (select private.place_parts(p_area) area, private.place_parts(p_place) place) t
$$;

-- The directory for one kind of help at one place; callers sort by `helps` and `near`. Nothing is stored.
create or replace function public.nonprofits_for(category_id text default null, place text default null)
returns table (id text, name text, mission text, location text, category text, average_response_time_days int, helps boolean, near boolean, search_text text)
language sql stable set search_path = '' as $$
  select d.id, d.name, d.mission, d.location, d.category, d.average_response_time_days,
    coalesce(nonprofits_for.category_id = any (d.helps_with), false),
    exists (select 1 from unnest(case when d.service_area = '{}' then array[d.location] else d.service_area end) a where private.covers(a, nonprofits_for.place)),
    d.search_text
  from public.nonprofit_directory d
$$;

-- The active categories: global ones and those of one organization.
create or replace function functions."get-categories"(input jsonb default '{}'::jsonb) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object('categories', coalesce(jsonb_agg(
    jsonb_build_object('id', c.id, 'name', c.name, 'description', c.description) order by c.nonprofit_id nulls first, c.id), '[]'::jsonb))
  from public.categories c
  where c.is_active and (c.nonprofit_id is null or c.nonprofit_id = input ->> 'nonprofit_id')
$$;
