-- Nonprofits, their team and their help categories. Power over an organization is one thing: an active row in
-- nonprofit_team_members that names the caller. The organization's founder gets an admin row by trigger.

create table public.nonprofits (
  id text primary key default gen_random_uuid()::text,
  name text not null constraint nonprofits_name check (length(btrim(name)) between 1 and 200),
  legal_status text not null constraint nonprofits_legal_status check (length(btrim(legal_status)) between 1 and 100),
  registration_number text not null constraint nonprofits_registration_number check (length(btrim(registration_number)) between 1 and 100),
  employee_count int not null constraint nonprofits_employee_count check (employee_count between 0 and 1000000),
  mission text not null constraint nonprofits_mission check (length(btrim(mission)) between 1 and 5000),
  admin_user_id uuid constraint nonprofits_one_per_admin unique references auth.users (id) on delete set null,
  email text constraint nonprofits_email check (email is null or private.valid_email(email)),
  phone text constraint nonprofits_phone check (length(phone) between 5 and 40),
  website text constraint nonprofits_website check (website ~* '^https?://[^\s]+$' and length(website) <= 300),
  description text constraint nonprofits_description check (length(description) <= 5000),
  location text constraint nonprofits_location check (length(location) <= 200),
  category text constraint nonprofits_category check (length(category) <= 100),
  average_response_time_days int constraint nonprofits_response_time check (average_response_time_days between 1 and 90),
  logo_path text constraint nonprofits_logo_path check (length(logo_path) <= 400),
  status text not null default 'active' constraint nonprofits_status check (status in ('active', 'awaiting_approval', 'closed')),
  closed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index nonprofits_directory on public.nonprofits (status, name);
comment on column public.nonprofits.logo_path is 'Object name in public bucket logos: <nonprofit id>/<file>.';
alter table public.profiles add constraint profiles_selected_nonprofit
  foreign key (selected_nonprofit_id) references public.nonprofits (id) on delete set null;
create index profiles_selected_nonprofit on public.profiles (selected_nonprofit_id) where selected_nonprofit_id is not null;

create table public.nonprofit_settings (
  nonprofit_id text primary key references public.nonprofits (id) on delete cascade,
  second_approval_above numeric(12, 2) constraint nonprofit_settings_second_approval check (second_approval_above >= 0),
  updated_at timestamptz not null default now()
);
comment on column public.nonprofit_settings.second_approval_above is
  'Approving more than this needs two different admins or managers. Null: one is enough.';

create table public.nonprofit_team_members (
  id text primary key default gen_random_uuid()::text,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  email text not null constraint nonprofit_team_members_email check (private.valid_email(email)),
  full_name text not null default '' constraint nonprofit_team_members_full_name check (length(full_name) <= 200),
  role text not null default 'employee' constraint nonprofit_team_members_role check (role in ('admin', 'manager', 'employee', 'volunteer')),
  user_id text not null default 'pending',
  is_active boolean not null default true,
  invited_at timestamptz,
  joined_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint nonprofit_team_members_user_id check (user_id = 'pending' or user_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
);
create unique index nonprofit_team_members_one_per_address on public.nonprofit_team_members (nonprofit_id, lower(email));
create unique index nonprofit_team_members_one_per_user on public.nonprofit_team_members (nonprofit_id, user_id) where user_id <> 'pending';
create index nonprofit_team_members_user on public.nonprofit_team_members (user_id) where user_id <> 'pending';
comment on column public.nonprofit_team_members.user_id is 'The member''s account, or ''pending'' until the invitation is accepted.';

create table private.team_invitations (
  id text primary key default gen_random_uuid()::text,
  member_id text not null references public.nonprofit_team_members (id) on delete cascade,
  token_hash text not null unique,
  email text not null,
  invited_by uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '14 days',
  accepted_at timestamptz
);
create index team_invitations_member on private.team_invitations (member_id);
alter table private.team_invitations enable row level security;

create table public.categories (
  id text primary key default gen_random_uuid()::text,
  name text not null constraint categories_name check (length(btrim(name)) between 1 and 100),
  description text constraint categories_description check (length(description) <= 1000),
  nonprofit_id text references public.nonprofits (id) on delete cascade,
  is_active boolean not null default true,
  created_at timestamptz not null default now()
);
create unique index categories_name_once on public.categories (coalesce(nonprofit_id, ''), lower(btrim(name)));
create index categories_nonprofit on public.categories (nonprofit_id);
comment on column public.categories.nonprofit_id is 'Null: a global category, offered by the wizard.';

-- --------------------------------------------------------------------------------------------- who may do what

-- Organizations in which the caller is an active member with one of p_roles; closed ones count only when asked for.
create function private.my_organizations(p_roles text[], p_closed_too boolean default false) returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select m.nonprofit_id from public.nonprofit_team_members m
  join public.nonprofits n on n.id = m.nonprofit_id
  where m.user_id = auth.uid()::text and m.is_active and m.role = any (p_roles)
    and (p_closed_too or n.status <> 'closed')
$$;

-- Admin, manager or employee: those who work on requests.
create function private.my_staff_organizations() returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select private.my_organizations(array['admin', 'manager', 'employee'], true)
$$;
create function private.my_managed_organizations() returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select private.my_organizations(array['admin', 'manager'], true)
$$;
create function private.my_admin_organizations() returns setof text
language sql stable security definer set search_path = '' rows 2 as $$
  select private.my_organizations(array['admin'], true)
$$;

-- The caller's active member row with one of p_roles, or an error that says what is wrong:
-- 401 sign_in_required, 404 organization_not_found, 403 not_a_member, 403 role_not_allowed, 409 organization_closed.
create function private.require_member(p_nonprofit_id text, p_roles text[]) returns public.nonprofit_team_members
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

-- --------------------------------------------------------------------------------------------------- triggers

-- A client founds an organization for itself alone and cannot choose its state.
create function private.guard_nonprofit() returns trigger
language plpgsql set search_path = '' as $$
begin
  if tg_op = 'INSERT' then
    if private.is_client() then
      new.id := private.client_id(new.id);
      new.admin_user_id := coalesce(new.admin_user_id, auth.uid());
      new.status := case when private.setting('nonprofit_approval_required') = 'true' then 'awaiting_approval' else 'active' end;
      new.created_at := now(); new.closed_at := null;
    end if;
  else
    if private.is_client() then
      if new.id <> old.id or new.admin_user_id is distinct from old.admin_user_id or new.status <> old.status then
        perform private.fail(403, 'not_changeable', 'This part of the organization cannot be changed here.');
      end if;
      if old.status = 'closed' then
        perform private.fail(409, 'organization_closed', 'This organization is closed.');
      end if;
      new.created_at := old.created_at; new.closed_at := old.closed_at;
    end if;
    new.updated_at := now();
  end if;
  return new;
end $$;
create trigger guard before insert or update on public.nonprofits for each row execute function private.guard_nonprofit();

-- The founder becomes its first admin, in the team and on the account.
create function private.on_nonprofit_created() returns trigger
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
create trigger created after insert on public.nonprofits for each row execute function private.on_nonprofit_created();

-- An added member is always 'pending' at first: only accepting the mailed invitation links an account.
create function private.guard_team_member() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.email := btrim(new.email);
  new.full_name := coalesce(private.clean(new.full_name), '');
  if private.is_client() then
    if tg_op = 'INSERT' then
      if private.clean(new.full_name) is null or private.clean(new.email) is null or new.role is null then
        perform private.fail(422, 'validation_failed', 'Please fill in all required fields.',
          jsonb_strip_nulls(jsonb_build_object('fields', jsonb_build_object(
            'full_name', case when private.clean(new.full_name) is null then 'Please fill in all required fields.' end,
            'email', case when private.clean(new.email) is null then 'Please fill in all required fields.' end))));
      end if;
      if not private.valid_email(new.email) then
        perform private.fail(422, 'validation_failed', 'Please enter a valid email address',
          jsonb_build_object('fields', jsonb_build_object('email', 'Please enter a valid email address')));
      end if;
      new.user_id := 'pending'; new.is_active := true; new.invited_at := null; new.joined_at := null; new.created_at := now();
    else
      new.id := old.id; new.nonprofit_id := old.nonprofit_id; new.user_id := old.user_id; new.email := old.email;
      new.created_at := old.created_at; new.invited_at := old.invited_at; new.joined_at := old.joined_at;
    end if;
  end if;
  if tg_op = 'UPDATE' then new.updated_at := now(); end if;
  return new;
end $$;
create trigger guard before insert or update on public.nonprofit_team_members
  for each row execute function private.guard_team_member();

-- An open organization keeps one active admin with an account. The founder's seat passes to the next admin.
create function private.keep_an_admin() returns trigger
language plpgsql security definer set search_path = '' as $$
declare successor text;
begin
  if old.role <> 'admin' or not old.is_active or old.user_id = 'pending' then return null; end if;
  if tg_op = 'UPDATE' and new.role = 'admin' and new.is_active and new.user_id = old.user_id then return null; end if;
  perform 1 from public.nonprofits n where n.id = old.nonprofit_id and n.status <> 'closed' for update;
  if not found then return null; end if;
  select m.user_id into successor from public.nonprofit_team_members m
  where m.nonprofit_id = old.nonprofit_id and m.role = 'admin' and m.is_active and m.user_id <> 'pending' and m.user_id <> old.user_id
  order by m.created_at limit 1;
  if successor is null then
    if coalesce(current_setting('private.account_leaving', true), '') = old.user_id then return null; end if;
    perform private.fail(409, 'last_admin', 'An organization needs at least one active admin. Make someone else admin first, or close the organization.');
  end if;
  update public.nonprofits set admin_user_id = successor::uuid
  where id = old.nonprofit_id and admin_user_id::text = old.user_id
    and not exists (select 1 from public.nonprofits o where o.admin_user_id::text = successor);
  return null;
end $$;
create trigger keep_an_admin after update or delete on public.nonprofit_team_members
  for each row execute function private.keep_an_admin();

-- A member's new role shows on the account as well.
create function private.on_team_role_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.user_roles u set nonprofit_role = new.role where u.user_id::text = new.user_id and u.role = 'nonprofit';
  return null;
end $$;
create trigger role_changed after update of role on public.nonprofit_team_members
  for each row when (new.role <> old.role and new.user_id <> 'pending') execute function private.on_team_role_changed();

-- A deleted account leaves its teams.
create function private.on_account_deleted() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform set_config('private.account_leaving', old.id::text, true);
  update public.nonprofit_team_members set is_active = false where user_id = old.id::text;
  update public.nonprofit_team_members set user_id = 'pending' where user_id = old.id::text;
  perform set_config('private.account_leaving', '', true);
  return old;
end $$;
create trigger aidbridge_account_deleted before delete on auth.users
  for each row execute function private.on_account_deleted();

create function private.guard_category() returns trigger
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
create trigger guard before insert or update on public.categories for each row execute function private.guard_category();
create trigger touch before update on public.nonprofit_settings for each row execute function private.touch();

-- ------------------------------------------------------------------------------------------------ invitations

-- A fresh invitation for a pending member: older ones end, the mail goes out.
create function private.send_invitation(p_member public.nonprofit_team_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare token text := private.new_token(); org text;
begin
  select name into org from public.nonprofits where id = p_member.nonprofit_id;
  update private.team_invitations set expires_at = now() where member_id = p_member.id and accepted_at is null and expires_at > now();
  insert into private.team_invitations (member_id, token_hash, email, invited_by)
  values (p_member.id, private.hash_token(token), lower(p_member.email), auth.uid());
  update public.nonprofit_team_members set invited_at = now() where id = p_member.id;
  perform private.mail(p_member.email, 'Join ' || org || ' on AidBridge', jsonb_build_object(
    'heading', 'Join ' || org,
    'paragraphs', jsonb_build_array(
      'Hello ' || coalesce(private.clean(p_member.full_name), 'there') || ',',
      org || ' invites you to join its team as ' || p_member.role || '. Sign in or sign up with this email address, then accept.'),
    'button', 'Accept the invitation', 'link', private.site_link('/team-invitation?token=' || token),
    'after', 'The invitation is good for 14 days and works once.',
    'why', 'You get this mail because ' || org || ' added this address to its team.'));
end $$;

create function private.on_team_member_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if new.user_id = 'pending' then
    perform private.require_rate('invite:' || new.nonprofit_id, 50, interval '1 hour');
    perform private.send_invitation(new);
  end if;
  return null;
end $$;
create trigger invite after insert on public.nonprofit_team_members
  for each row when (new.user_id = 'pending' and new.invited_at is null) execute function private.on_team_member_added();

-- ---------------------------------------------------------------------------------------------------- policies

alter table public.nonprofits enable row level security;
alter table public.nonprofit_settings enable row level security;
alter table public.nonprofit_team_members enable row level security;
alter table public.categories enable row level security;

create policy "everyone reads active organizations" on public.nonprofits for select to anon, authenticated
  using (status = 'active');
create policy "members read their organization" on public.nonprofits for select to authenticated
  using (admin_user_id = (select auth.uid()) or id in (select private.my_organizations(array['admin', 'manager', 'employee', 'volunteer'], true)));
create policy "a user founds one organization" on public.nonprofits for insert to authenticated
  with check (admin_user_id = (select auth.uid()));
create policy "admins change their organization" on public.nonprofits for update to authenticated
  using (id in (select private.my_admin_organizations())) with check (id in (select private.my_admin_organizations()));

create policy "staff read settings" on public.nonprofit_settings for select to authenticated
  using (nonprofit_id in (select private.my_staff_organizations()));
create policy "admins change settings" on public.nonprofit_settings for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin'])));

create policy "members read their own row" on public.nonprofit_team_members for select to authenticated
  using (user_id = (select auth.uid())::text);
create policy "managers read the team" on public.nonprofit_team_members for select to authenticated
  using (nonprofit_id in (select private.my_managed_organizations()));
create policy "admins add members" on public.nonprofit_team_members for insert to authenticated
  with check (nonprofit_id in (select private.my_organizations(array['admin'])));
create policy "admins change members" on public.nonprofit_team_members for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin'])));
create policy "admins remove members" on public.nonprofit_team_members for delete to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin'])));

create policy "everyone reads categories" on public.categories for select to anon, authenticated
  using (nonprofit_id is null or is_active or nonprofit_id in (select private.my_staff_organizations()));
create policy "managers add categories" on public.categories for insert to authenticated
  with check (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
create policy "managers change categories" on public.categories for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
create policy "managers delete categories" on public.categories for delete to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
