-- The schemas, what tables here call, settings and counters.
--
-- Numbered files hold tables and data: each runs once and is never edited; the next number is above the last. They read as the
-- tables of today. What may change freely (functions, views, triggers, policies, rights) stands in a folder per subject.
--
-- `public` holds what the API exposes. `private` holds helpers and tables no client may name. `functions` holds what
-- is served at /functions/v1. Functions are SECURITY DEFINER with an empty search path unless a comment says why not.

create schema if not exists private;
create schema if not exists functions;

-- Two functions that constraints and defaults call. They are part of the tables: another rule for addresses would be a migration
-- that checks the rows again.

create function private.valid_email(p text) returns boolean
language sql immutable set search_path = '' as $$
  select coalesce(length(p) <= 254 and p ~ '^[^@\s<>"(),;:\\]+@[^@\s<>"(),;:\\.]+(\.[^@\s<>"(),;:\\.]+)+$', false)
$$;
create function private.new_token() returns text
language sql volatile set search_path = '' as $$
  select replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
$$;

create table private.app_settings (
  key text primary key,
  value text not null
);
alter table private.app_settings enable row level security;
comment on table private.app_settings is
  'Fallbacks for settings of the platform. app.settings.<key>, set by the server, wins over the row.';

insert into private.app_settings (key, value) values
  ('site_url', 'http://127.0.0.1:54321'),
  ('support_email', 'support@aidbridge.example'),
  ('product_name', 'AidBridge'),
  ('nonprofit_approval_required', 'false'),
  ('rate_limit_factor', '1');

create table private.rate_limits (
  key text not null,
  window_start timestamptz not null,
  hits int not null default 0,
  primary key (key, window_start)
);
alter table private.rate_limits enable row level security;
create index rate_limits_age on private.rate_limits (window_start);

-- A key stands for one content. A repeat with the same content is the same act; another content under the same key is refused, so that
-- nobody is told that something was sent or recorded which was not.
create table private.sent_contents (
  scope text not null,
  key uuid not null,
  hash bytea not null,
  sent_at timestamptz not null default now(),
  primary key (scope, key)
);
create index sent_contents_age on private.sent_contents (sent_at);
alter table private.sent_contents enable row level security;
comment on table private.sent_contents is 'What was sent under a client''s key, as a hash. Kept for 90 days; later a repeat is taken for the same.';

-- What the server calls every hour.
insert into ferrobase.hourly (function) values ('public.sweep_guest_files'), ('private.sweep'), ('private.mail_waiting_donors')
on conflict do nothing;
