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
  updated_at timestamptz not null default now(),
  constraint nonprofits_logo_of_their_own check (logo_path is null or starts_with(logo_path, id || '/'))
);
create index nonprofits_directory on public.nonprofits (status, name);
comment on column public.nonprofits.logo_path is 'Object name in public bucket logos: <nonprofit id>/<file>.';

alter table public.profiles add constraint profiles_selected_nonprofit
  foreign key (selected_nonprofit_id) references public.nonprofits (id) on delete set null;
create index profiles_selected_nonprofit on public.profiles (selected_nonprofit_id) where selected_nonprofit_id is not null;

create table public.nonprofit_settings (
  nonprofit_id text primary key references public.nonprofits (id) on delete cascade,
  second_approval_above numeric(12, 2) constraint nonprofit_settings_second_approval check (second_approval_above >= 0 and second_approval_above <> 'NaN'),
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
alter table public.nonprofits enable row level security;
alter table public.nonprofit_settings enable row level security;
alter table public.nonprofit_team_members enable row level security;
alter table public.categories enable row level security;
