-- The rules of the forms, told by the tables as the functions tell them: a plain write that breaks one answers 422
-- `validation_failed` with the form's message at each field, and the constraints stand behind.

-- A name of one letter is none.
update public.profiles set full_name = null where length(btrim(full_name)) < 2;
alter table public.profiles add constraint profiles_full_name check (length(btrim(full_name)) between 2 and 200);

create function private.fail_fields(p_message text, p_fields jsonb) returns void
language plpgsql set search_path = '' as $$
begin
  if p_fields <> '{}' then
    perform private.fail(422, 'validation_failed', p_message, jsonb_build_object('fields', p_fields));
  end if;
end $$;

-- A client may neither invent an address nor leave out what the profile's forms ask for once it is there.
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

create function private.guard_identity() returns trigger
language plpgsql set search_path = '' as $$
begin
  perform private.fail_fields('Please check the marked fields.',
    case when coalesce(btrim(new.id_type), '') = '' then '{"id_type": "ID type is required"}'::jsonb else '{}' end
    || case when coalesce(btrim(new.id_number), '') = '' then '{"id_number": "ID number is required"}'::jsonb else '{}' end);
  return new;
end $$;
create trigger guard before insert or update on public.profile_identities for each row execute function private.guard_identity();

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

-- A client founds an organization for itself alone and cannot choose its state; onboarding's fields are all required.
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
  if tg_op = 'UPDATE' then new.updated_at := now(); end if;
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

-- A new account: profile, role from the sign-up metadata (requester or nonprofit, requester by default), address not yet proved.
create or replace function private.on_account_created() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  wanted text := new.raw_user_meta_data ->> 'role';
  full_name text := private.clean(new.raw_user_meta_data ->> 'full_name');
begin
  if length(full_name) < 2 then full_name := null; end if;
  insert into public.profiles (id, email, full_name, first_name, last_name, phone) values (
    new.id, new.email, left(full_name, 200),
    case when length(split_part(full_name, ' ', 1)) >= 2 then left(split_part(full_name, ' ', 1), 100) end,
    case when length(private.clean(substr(full_name, strpos(full_name, ' ')))) >= 2 and strpos(full_name, ' ') > 0
         then left(private.clean(substr(full_name, strpos(full_name, ' '))), 100) end,
    left(coalesce(private.clean(new.raw_user_meta_data ->> 'phone'), nullif(new.phone, '')), 40))
  on conflict (id) do nothing;
  if wanted is null or wanted not in ('requester', 'nonprofit') then wanted := 'requester'; end if;
  insert into public.user_roles (user_id, role, nonprofit_role)
  values (new.id, wanted, case when wanted = 'nonprofit' then 'admin' end)
  on conflict (user_id) do nothing;
  if coalesce(new.email, '') <> '' then
    insert into private.account_addresses (user_id, email) values (new.id, lower(new.email)) on conflict (user_id) do nothing;
  end if;
  return new;
end $$;

-- The account changed: name and phone of My Profile follow the metadata, a name too short does not; a new address is unproved again.
create or replace function private.on_account_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
declare given text := private.clean(new.raw_user_meta_data ->> 'full_name');
begin
  update public.profiles p set
    email = new.email,
    full_name = case when new.raw_user_meta_data ->> 'full_name' is distinct from old.raw_user_meta_data ->> 'full_name' and length(given) >= 2
      then left(given, 200) else p.full_name end,
    phone = case when new.raw_user_meta_data ->> 'phone' is distinct from old.raw_user_meta_data ->> 'phone'
      then left(private.clean(new.raw_user_meta_data ->> 'phone'), 40) else p.phone end
  where p.id = new.id
    and (old.email is distinct from new.email or old.raw_user_meta_data is distinct from new.raw_user_meta_data);
  if lower(coalesce(old.email, '')) <> lower(coalesce(new.email, '')) then
    delete from private.account_addresses where user_id = new.id;
    if coalesce(new.email, '') <> '' then
      insert into private.account_addresses (user_id, email, since) values (new.id, lower(new.email), clock_timestamp());
    end if;
  end if;
  return new;
end $$;

revoke all on function private.fail_fields(text, jsonb), private.guard_identity() from public, anon, authenticated, service_role;
grant execute on function private.fail_fields(text, jsonb) to authenticated, service_role;
