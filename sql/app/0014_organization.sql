-- Founding an organization, joining and leaving its team, its settings, closing it.

create function public.create_organization(input jsonb) returns public.nonprofits
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

create function public.resend_team_invitation(member_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare m public.nonprofit_team_members;
begin
  select * into m from public.nonprofit_team_members x where x.id = resend_team_invitation.member_id;
  perform private.require_member(m.nonprofit_id, array['admin']);
  if m.user_id <> 'pending' then perform private.fail(409, 'already_joined', 'This person has already joined.'); end if;
  perform private.require_rate('invite:' || m.nonprofit_id, 50, interval '1 hour');
  perform private.send_invitation(m);
  return '{"sent": true}';
end $$;

-- What an invitation link is about, before it is accepted. The token is the secret; the address is shown masked.
create function public.team_invitation(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare i private.team_invitations; m public.nonprofit_team_members; n public.nonprofits;
begin
  perform private.require_rate('invitation:' || private.client_address(), 60, interval '1 minute');
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
create function public.accept_team_invitation(token text) returns jsonb
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
  perform private.notify_staff(n.id, 'success', 'Team Member Added', coalesce(nullif(m.full_name, ''), m.email) || ' accepted the invitation.', '/nonprofit-team', null, array['admin'], uid);
  return jsonb_build_object('nonprofit_id', n.id, 'name', n.name, 'role', m.role);
end $$;

create function public.leave_organization(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare m public.nonprofit_team_members := private.require_member(leave_organization.nonprofit_id, array['admin', 'manager', 'employee', 'volunteer']);
begin
  delete from public.nonprofit_team_members x where x.id = m.id;
  update public.nonprofits n set admin_user_id = null where n.id = m.nonprofit_id and n.admin_user_id::text = m.user_id;
  return '{"left": true}';
end $$;

-- Closes the organization: nothing is lost, its open requests go back to the others or end with a clear reason.
create function public.close_organization(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := close_organization.nonprofit_id; id_ text; r public.requests; p public.request_nonprofits; n int := 0;
begin
  perform private.require_member(np, array['admin']);
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

create function public.set_second_approval(nonprofit_id text, above numeric default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_member(set_second_approval.nonprofit_id, array['admin']);
  if set_second_approval.above is not null and set_second_approval.above <> 0 then perform private.require_amount(set_second_approval.above); end if;
  insert into public.nonprofit_settings (nonprofit_id, second_approval_above) values (set_second_approval.nonprofit_id, set_second_approval.above)
  on conflict (nonprofit_id) do update set second_approval_above = excluded.second_approval_above;
  return jsonb_build_object('second_approval_above', set_second_approval.above);
end $$;
