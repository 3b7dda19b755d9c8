-- People: the account's role, its profile, and what it has proved about its e-mail address.

create table public.user_roles (
  user_id uuid primary key references auth.users (id) on delete cascade,
  role text not null default 'requester' constraint user_roles_role check (role in ('requester', 'nonprofit', 'donor')),
  nonprofit_role text constraint user_roles_nonprofit_role check (nonprofit_role in ('admin', 'manager', 'employee', 'volunteer')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on table public.user_roles is
  'Which pages an account uses. Its owner may change it; it grants no power over any organization (nonprofit_team_members does).';

create table public.profiles (
  id uuid primary key references auth.users (id) on delete cascade,
  email text,
  full_name text,
  first_name text constraint profiles_first_name check (length(btrim(first_name)) between 2 and 100),
  middle_name text constraint profiles_middle_name check (length(middle_name) <= 100),
  last_name text constraint profiles_last_name check (length(btrim(last_name)) between 2 and 100),
  phone text constraint profiles_phone check (length(phone) <= 40),
  bio text constraint profiles_bio check (length(bio) <= 2000),
  birthday date constraint profiles_birthday check (birthday > date '1900-01-01'),
  country text constraint profiles_country check (length(btrim(country)) between 1 and 100),
  photo_path text constraint profiles_photo_path check (length(photo_path) <= 400),
  selected_nonprofit_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
comment on column public.profiles.photo_path is 'Object name in bucket profile-photos: <user id>/<file>.';

-- Apart from profiles, so that nobody but the owner, not even service_role, has a grant on it.
create table public.profile_identities (
  user_id uuid primary key references auth.users (id) on delete cascade,
  id_type text not null constraint profile_identities_id_type check (length(btrim(id_type)) between 1 and 60),
  id_number text not null constraint profile_identities_id_number check (length(btrim(id_number)) between 1 and 100),
  updated_at timestamptz not null default now()
);

-- The account's current address: since when it is the account's, and whether a mailed code or link ever proved it.
create table private.account_addresses (
  user_id uuid primary key references auth.users (id) on delete cascade,
  email text not null,
  since timestamptz not null default now(),
  proved_at timestamptz
);
alter table private.account_addresses enable row level security;

-- Age in whole years, selectable as `age` on profiles.
create function public.age(p public.profiles) returns int
language sql stable set search_path = '' as $$
  select extract(year from pg_catalog.age(current_date, p.birthday))::int
$$;

-- nonprofit_role belongs to the role nonprofit alone.
create function private.normalise_user_role() returns trigger
language plpgsql set search_path = '' as $$
begin
  if new.role <> 'nonprofit' then new.nonprofit_role := null; end if;
  new.updated_at := now();
  return new;
end $$;
create trigger normalise before insert or update on public.user_roles
  for each row execute function private.normalise_user_role();
create trigger touch before update on public.profiles for each row execute function private.touch();
create trigger touch before update on public.profile_identities for each row execute function private.touch();

-- A client may neither invent an address nor a birthday to come.
create function private.guard_profile() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() and tg_op = 'UPDATE' then
    new.id := old.id; new.email := old.email; new.created_at := old.created_at;
  end if;
  if new.birthday > current_date then
    perform private.fail(422, 'validation_failed', 'Please check the marked fields.',
      jsonb_build_object('fields', jsonb_build_object('birthday', 'Birthday cannot be in the future')));
  end if;
  return new;
end $$;
create trigger guard before insert or update on public.profiles for each row execute function private.guard_profile();

-- A new account: profile, role from the sign-up metadata (requester or nonprofit, requester by default), address not yet proved.
create function private.on_account_created() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  wanted text := new.raw_user_meta_data ->> 'role';
  full_name text := private.clean(new.raw_user_meta_data ->> 'full_name');
begin
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
create trigger aidbridge_account_created after insert on auth.users
  for each row execute function private.on_account_created();

-- The account changed: name and phone of My Profile follow the metadata; a new address is unproved again.
create function private.on_account_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.profiles p set
    email = new.email,
    full_name = case when new.raw_user_meta_data ->> 'full_name' is distinct from old.raw_user_meta_data ->> 'full_name'
      then coalesce(left(private.clean(new.raw_user_meta_data ->> 'full_name'), 200), p.full_name) else p.full_name end,
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
create trigger aidbridge_account_changed after update of email, raw_user_meta_data on auth.users
  for each row execute function private.on_account_changed();

-- Accounts that were there before this migration.
insert into public.profiles (id, email, full_name)
  select u.id, u.email, left(private.clean(u.raw_user_meta_data ->> 'full_name'), 200) from auth.users u on conflict do nothing;
insert into public.user_roles (user_id) select u.id from auth.users u on conflict do nothing;
insert into private.account_addresses (user_id, email) select u.id, lower(u.email) from auth.users u where coalesce(u.email, '') <> '' on conflict do nothing;

-- True when the caller proved the account's present address by a mailed code or link: our own code, or a session whose
-- `amr` names a mailed method later than the address became the account's. Remembers the second kind. Autoconfirm is no proof.
create function private.address_is_proved() returns boolean
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

alter table public.user_roles enable row level security;
alter table public.profiles enable row level security;
alter table public.profile_identities enable row level security;

create policy "owner reads role" on public.user_roles for select to authenticated using (user_id = (select auth.uid()));
create policy "owner sets role" on public.user_roles for insert to authenticated with check (user_id = (select auth.uid()));
create policy "owner changes role" on public.user_roles for update to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));

create policy "owner reads profile" on public.profiles for select to authenticated using (id = (select auth.uid()));
create policy "owner makes profile" on public.profiles for insert to authenticated with check (id = (select auth.uid()));
create policy "owner changes profile" on public.profiles for update to authenticated
  using (id = (select auth.uid())) with check (id = (select auth.uid()));

create policy "owner reads identity" on public.profile_identities for select to authenticated using (user_id = (select auth.uid()));
create policy "owner writes identity" on public.profile_identities for insert to authenticated with check (user_id = (select auth.uid()));
create policy "owner changes identity" on public.profile_identities for update to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));
create policy "owner removes identity" on public.profile_identities for delete to authenticated using (user_id = (select auth.uid()));
