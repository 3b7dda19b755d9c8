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
  updated_at timestamptz not null default now(),
  constraint profiles_full_name check (length(btrim(full_name)) between 2 and 200),
  constraint profiles_photo_of_their_own check (photo_path is null or photo_path like id::text || '/%')
);
create index profiles_email on public.profiles (lower(email));
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
create index account_addresses_email on private.account_addresses (email);
alter table private.account_addresses enable row level security;

alter table public.user_roles enable row level security;
alter table public.profiles enable row level security;
alter table public.profile_identities enable row level security;

-- Codes that prove an address. A code belongs to whoever asked for it, and so do its tries and its end: nobody can keep another from
-- theirs.
create table private.address_codes (
  id uuid primary key default gen_random_uuid(),
  email text not null,
  code_hash text not null,
  tries int not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '15 minutes',
  used_at timestamptz,
  asker text
);
create index address_codes_email on private.address_codes (email, asker, created_at desc);
create index address_codes_age on private.address_codes (expires_at);
comment on column private.address_codes.asker is 'user:<account> or net:<network> that asked; only the same may try the code or end it.';

create table private.address_proofs (
  token_hash text primary key,
  email text not null,
  expires_at timestamptz not null default now() + interval '1 hour'
);
create index address_proofs_age on private.address_proofs (expires_at);
alter table private.address_codes enable row level security;
alter table private.address_proofs enable row level security;

-- Accounts that were there before these tables.
insert into public.profiles (id, email, full_name)
  select u.id, u.email, n.name from auth.users u
  cross join lateral (select left(btrim(u.raw_user_meta_data ->> 'full_name'), 200) as given) g
  cross join lateral (select case when length(btrim(g.given)) >= 2 then btrim(g.given) end as name) n;
insert into public.user_roles (user_id) select u.id from auth.users u;
insert into private.account_addresses (user_id, email) select u.id, lower(u.email) from auth.users u where coalesce(u.email, '') <> '';
