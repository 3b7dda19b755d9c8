-- Schema ferrobase: the server's own data. The migrator creates the schema and its ledgers.

grant usage on schema ferrobase to service_role, supabase_auth_admin, ferrobase_admin;

-- A project's functions queue mail and register hourly functions; the owner records the demo data.
do $$
begin
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant usage on schema ferrobase to postgres;
    grant select, insert, update, delete on ferrobase.seed_files, ferrobase.seeded_users to postgres;
  end if;
end $$;

-- The project that `ferrobase start` created this database for, and whether its first start was completed.
create table if not exists ferrobase.project (
  id       text primary key,
  complete boolean not null default false
);

-- Mail to be delivered, written in the transaction that causes it and deleted once the mail server has taken it.
create table if not exists ferrobase.outbox (
  id              bigint generated always as identity primary key,
  recipient       text not null,
  subject         text not null,
  body_text       text not null,
  body_html       text not null,
  headers         jsonb not null default '{}',
  created_at      timestamptz not null default now(),
  attempts        integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  -- Set when the server has given up; such rows stay for inspection.
  failed_at       timestamptz,
  last_error      text
);
alter table ferrobase.outbox
  -- sms: the recipient is a phone number, body_text the whole message.
  add column if not exists channel text not null default 'mail' check (channel in ('mail', 'sms'));
drop index if exists ferrobase.outbox_due;
create index if not exists outbox_due_by_channel on ferrobase.outbox (channel, next_attempt_at) where failed_at is null;
create or replace function ferrobase.notify_outbox() returns trigger
language plpgsql
set search_path = ''
as $$
begin
  notify ferrobase_outbox;
  return null;
end $$;
create or replace trigger outbox_notify after insert on ferrobase.outbox
  for each statement execute function ferrobase.notify_outbox();

-- Queues a mail: delivered after commit, at least once, never if the transaction rolls back. Returns the outbox id.
-- Invalid arguments do not fail the caller's transaction; the server finds out what cannot be delivered. `headers`
-- holds further header lines by name, e.g. {"List-Unsubscribe": "<https://…>"}.
create or replace function ferrobase.send_mail(
  "to" text,
  subject text,
  "text" text,
  html text,
  headers jsonb default '{}'
) returns bigint
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into ferrobase.outbox (recipient, subject, body_text, body_html, headers)
  values (coalesce($1, ''), coalesce($2, ''), coalesce($3, ''), coalesce($4, ''), coalesce($5, '{}'))
  returning id
$$;
revoke execute on function ferrobase.send_mail(text, text, text, text, jsonb) from public;
grant execute on function ferrobase.send_mail(text, text, text, text, jsonb)
  to service_role, supabase_auth_admin, ferrobase_admin;

-- Texts: whether they can be sent, which the server writes at start, and the limits, which an operator may change.
create table if not exists ferrobase.sms_rules (
  id         boolean primary key default true check (id),
  served     boolean not null default false,
  per_number integer not null default 10,
  per_day    integer not null default 2000
);
insert into ferrobase.sms_rules default values on conflict do nothing;

-- Texts queued per number and day.
create table if not exists ferrobase.sms_counts (
  day    date,
  number text,
  sent   integer not null default 1,
  primary key (day, number)
);

-- Numbers that sent STOP. A project that stores consents may put a trigger on it.
create table if not exists ferrobase.sms_stopped (
  number     text primary key,
  stopped_at timestamptz not null default now()
);

-- Queues a text to a number in the form +15551234567: delivered after commit, at least once, never if the transaction
-- rolls back. Returns the outbox id; null if nothing is queued: no provider, an invalid number, a STOP, or the daily
-- limit is reached.
create or replace function ferrobase.send_sms("to" text, "text" text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  today constant date := (now() at time zone 'utc')::date;
  rules ferrobase.sms_rules;
  queued bigint;
begin
  select * into rules from ferrobase.sms_rules;
  if rules.served is not true or coalesce($1, '') !~ '^\+[1-9][0-9]{7,14}$' or coalesce($2, '') = ''
    or exists (select from ferrobase.sms_stopped s where s.number = $1) then
    return null;
  end if;
  if (select coalesce(sum(c.sent), 0) from ferrobase.sms_counts c where c.day = today) >= rules.per_day then
    raise warning 'ferrobase.send_sms: % texts are the most for a day (ferrobase.sms_rules)', rules.per_day;
    return null;
  end if;
  if rules.per_number < 1 then return null; end if;
  insert into ferrobase.sms_counts as c (day, number) values (today, $1)
  on conflict (day, number) do update set sent = c.sent + 1 where c.sent < rules.per_number;
  if not found then return null; end if;
  delete from ferrobase.sms_counts where (day, number) in (
    select c.day, c.number from ferrobase.sms_counts c where c.day < today - 1 limit 100 for update skip locked);
  insert into ferrobase.outbox (channel, recipient, subject, body_text, body_html)
  values ('sms', $1, '', left($2, 1600), '') returning id into queued;
  return queued;
end $$;
revoke execute on function ferrobase.send_sms(text, text) from public;
grant execute on function ferrobase.send_sms(text, text) to service_role, ferrobase_admin;

-- Records that a number stopped texts, and deletes queued ones; or that it wants them again.
create or replace function ferrobase.stop_sms(number text, stopped boolean) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if $2 then
    insert into ferrobase.sms_stopped (number) values ($1) on conflict do nothing;
    delete from ferrobase.outbox o where o.channel = 'sms' and o.recipient = $1;
  else
    delete from ferrobase.sms_stopped s where s.number = $1;
  end if;
end $$;
revoke execute on function ferrobase.stop_sms(text, boolean) from public;
grant execute on function ferrobase.stop_sms(text, boolean) to ferrobase_admin;

-- What the development inbox has received.
create table if not exists ferrobase.inbox (
  id          bigint generated always as identity primary key,
  recipient   text not null,
  subject     text not null,
  body_text   text not null,
  body_html   text not null,
  headers     jsonb not null default '{}',
  received_at timestamptz not null default now()
);
alter table ferrobase.inbox
  add column if not exists sender text not null default '',
  -- When a person first looked at it.
  add column if not exists opened_at timestamptz;
create index if not exists inbox_recipient on ferrobase.inbox (lower(recipient), id desc);

grant select, insert, update, delete on ferrobase.outbox, ferrobase.inbox to ferrobase_admin;
grant select, update on ferrobase.sms_rules to ferrobase_admin;
grant select on ferrobase.sms_stopped to ferrobase_admin;

-- What the server calls every hour, as service_role and without arguments: functions of the project by schema-qualified name.
-- `insert into ferrobase.hourly (function) values ('public.sweep_something')` in a migration, and grant service_role to execute it.
create table if not exists ferrobase.hourly (
  function text primary key
);
grant select on ferrobase.hourly to service_role;

-- This schema is protected only by grants: a remote `db reset` of the Supabase CLI drops all policies as `postgres`,
-- and fails at the first one that it may not drop. Databases of earlier versions have some.
do $$
declare
  item record;
begin
  for item in
    select c.oid::regclass as name, p.polname
    from pg_catalog.pg_class c
    left join pg_catalog.pg_policy p on p.polrelid = c.oid
    where c.relnamespace = 'ferrobase'::regnamespace and c.relkind = 'r' and c.relrowsecurity
  loop
    if item.polname is not null then
      execute pg_catalog.format('drop policy %I on %s', item.polname, item.name);
    end if;
    execute pg_catalog.format('alter table %s disable row level security', item.name);
  end loop;
end $$;

-- Calls each of them and returns the failed ones with the reason. A failure rolls back only that call. Runs with the
-- caller's rights.
create or replace function ferrobase.call_hourly() returns table (function text, error text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  known regproc;
begin
  for function in select h.function from ferrobase.hourly h order by 1 loop
    begin
      known := to_regproc(function);
      if known is null then
        raise exception 'there is no such function';
      end if;
      execute pg_catalog.format('select * from %s()', known);
    exception when others then
      error := sqlerrm;
      return next;
    end;
  end loop;
end $$;
revoke execute on function ferrobase.call_hourly() from public;
grant execute on function ferrobase.call_hourly() to service_role;

do $$
begin
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant execute on function ferrobase.send_mail(text, text, text, text, jsonb) to postgres;
    grant execute on function ferrobase.send_sms(text, text) to postgres;
    grant execute on function ferrobase.stop_sms(text, boolean) to postgres;
    grant select, update on ferrobase.sms_rules to postgres;
    grant select, trigger on ferrobase.sms_stopped to postgres;
    grant select, delete on ferrobase.sms_counts to postgres;
    grant execute on function ferrobase.call_hourly() to postgres;
    grant select on ferrobase.outbox, ferrobase.inbox to postgres;
    grant select, insert, update, delete on ferrobase.hourly to postgres;
  end if;
end $$;
