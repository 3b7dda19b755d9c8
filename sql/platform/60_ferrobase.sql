-- Schema ferrobase: functions for projects; and the server's own tables, in schema _supavisor. The migrator creates that schema and
-- its ledgers.
--
-- On the embedded PostgreSQL the functions and views of schema ferrobase are members of the extension plpgsql, so that dumps leave them
-- out (`server/src/migrate/members.sql`). None of them may depend on a table as PostgreSQL sees it, because a restore that
-- begins with dropping could not drop the table then: bodies of functions are text, and views read from functions.

grant usage on schema ferrobase to service_role, supabase_auth_admin, supabase_ferrobase_admin;
grant usage on schema _supavisor to service_role, supabase_ferrobase_admin;

do $$
declare
  name text;
begin
  foreach name in array array['project', 'outbox', 'sms_rules', 'sms_counts', 'sms_stopped', 'inbox'] loop
    perform _supavisor.take_over(name);
  end loop;
  -- It gets a view of its own below.
  if pg_catalog.to_regclass('_supavisor.hourly') is null and pg_catalog.to_regclass('ferrobase.hourly') is not null then
    alter table ferrobase.hourly set schema _supavisor;
  end if;
end $$;

-- A project's functions queue mail and register hourly functions; the owner records the demo data.
do $$
begin
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant usage on schema ferrobase, _supavisor to postgres;
    grant select, insert, update, delete on _supavisor.seed_files, _supavisor.seeded_users to postgres;
  end if;
end $$;

-- The project that `ferrobase start` created this database for, and whether its first start was completed.
create table if not exists _supavisor.project (
  id       text primary key,
  complete boolean not null default false
);

-- Mail to be delivered, written in the transaction that causes it and deleted once the mail server has taken it.
create table if not exists _supavisor.outbox (
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
alter table _supavisor.outbox
  -- sms: the recipient is a phone number, body_text the whole message.
  add column if not exists channel text not null default 'mail' check (channel in ('mail', 'sms'));
drop index if exists _supavisor.outbox_due;
create index if not exists outbox_due_by_channel on _supavisor.outbox (channel, next_attempt_at) where failed_at is null;
create or replace function _supavisor.notify_outbox() returns trigger
language plpgsql
set search_path = ''
as $$
begin
  notify ferrobase_outbox;
  return null;
end $$;
create or replace trigger outbox_notify after insert on _supavisor.outbox
  for each statement execute function _supavisor.notify_outbox();
drop function if exists ferrobase.notify_outbox();

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
  insert into _supavisor.outbox (recipient, subject, body_text, body_html, headers)
  values (coalesce($1, ''), coalesce($2, ''), coalesce($3, ''), coalesce($4, ''), coalesce($5, '{}'))
  returning id
$$;
revoke execute on function ferrobase.send_mail(text, text, text, text, jsonb) from public;
grant execute on function ferrobase.send_mail(text, text, text, text, jsonb)
  to service_role, supabase_auth_admin, supabase_ferrobase_admin;

-- Texts: whether they can be sent, which the server writes at start, and the limits, which an operator may change.
create table if not exists _supavisor.sms_rules (
  id         boolean primary key default true check (id),
  served     boolean not null default false,
  per_number integer not null default 10,
  per_day    integer not null default 2000
);
insert into _supavisor.sms_rules default values on conflict do nothing;

-- Texts queued per number and day.
create table if not exists _supavisor.sms_counts (
  day    date,
  number text,
  sent   integer not null default 1,
  primary key (day, number)
);

-- Numbers that sent STOP. A project that stores consents may put a trigger on it.
create table if not exists _supavisor.sms_stopped (
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
  rules _supavisor.sms_rules;
  queued bigint;
begin
  select * into rules from _supavisor.sms_rules;
  if rules.served is not true or coalesce($1, '') !~ '^\+[1-9][0-9]{7,14}$' or coalesce($2, '') = ''
    or exists (select from _supavisor.sms_stopped s where s.number = $1) then
    return null;
  end if;
  if (select coalesce(sum(c.sent), 0) from _supavisor.sms_counts c where c.day = today) >= rules.per_day then
    raise warning 'ferrobase.send_sms: % texts are the most for a day (_supavisor.sms_rules)', rules.per_day;
    return null;
  end if;
  if rules.per_number < 1 then return null; end if;
  insert into _supavisor.sms_counts as c (day, number) values (today, $1)
  on conflict (day, number) do update set sent = c.sent + 1 where c.sent < rules.per_number;
  if not found then return null; end if;
  delete from _supavisor.sms_counts where (day, number) in (
    select c.day, c.number from _supavisor.sms_counts c where c.day < today - 1 limit 100 for update skip locked);
  insert into _supavisor.outbox (channel, recipient, subject, body_text, body_html)
  values ('sms', $1, '', left($2, 1600), '') returning id into queued;
  return queued;
end $$;
revoke execute on function ferrobase.send_sms(text, text) from public;
grant execute on function ferrobase.send_sms(text, text) to service_role, supabase_ferrobase_admin;

-- Records that a number stopped texts, and deletes queued ones; or that it wants them again.
create or replace function ferrobase.stop_sms(number text, stopped boolean) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if $2 then
    insert into _supavisor.sms_stopped (number) values ($1) on conflict do nothing;
    delete from _supavisor.outbox o where o.channel = 'sms' and o.recipient = $1;
  else
    delete from _supavisor.sms_stopped s where s.number = $1;
  end if;
end $$;
revoke execute on function ferrobase.stop_sms(text, boolean) from public;
grant execute on function ferrobase.stop_sms(text, boolean) to supabase_ferrobase_admin;
-- Triggers on `sms_stopped` run with the function's rights, so it must not belong to a superuser.
do $$
begin
  if (select r.rolsuper from pg_catalog.pg_proc p join pg_catalog.pg_roles r on r.oid = p.proowner
      where p.oid = 'ferrobase.stop_sms(text, boolean)'::pg_catalog.regprocedure) then
    grant usage on schema _supavisor to supabase_functions_admin;
    grant select, insert, delete on _supavisor.sms_stopped to supabase_functions_admin;
    grant select, delete on _supavisor.outbox to supabase_functions_admin;
    alter function ferrobase.stop_sms(text, boolean) owner to supabase_functions_admin;
  end if;
end $$;

-- What the development inbox has received.
create table if not exists _supavisor.inbox (
  id          bigint generated always as identity primary key,
  recipient   text not null,
  subject     text not null,
  body_text   text not null,
  body_html   text not null,
  headers     jsonb not null default '{}',
  received_at timestamptz not null default now()
);
alter table _supavisor.inbox
  add column if not exists sender text not null default '',
  -- When a person first looked at it.
  add column if not exists opened_at timestamptz,
  -- Of mails that came by SMTP: what Mailpit tells of them, and the mails themselves.
  add column if not exists details jsonb,
  add column if not exists source bytea;
create index if not exists inbox_recipient on _supavisor.inbox (lower(recipient), id desc);

grant select, insert, update, delete on _supavisor.outbox, _supavisor.inbox to supabase_ferrobase_admin;
grant select, update on _supavisor.sms_rules to supabase_ferrobase_admin;
grant select on _supavisor.sms_stopped to supabase_ferrobase_admin;

-- What the server calls every hour, as service_role and without arguments: functions of the project by schema-qualified name.
-- `insert into ferrobase.hourly (function) values ('public.sweep_something')` in a migration, and grant service_role to execute it.
-- Each call is a transaction of its own. If the function has an output column `again` and that is true, it is called once more.
create table if not exists _supavisor.hourly (
  function text primary key
);
grant select on _supavisor.hourly to service_role;

create or replace function ferrobase.hourly_functions() returns table (function text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$ select h.function from _supavisor.hourly h $$;
create or replace view ferrobase.hourly as select h.function from ferrobase.hourly_functions() h;
create or replace function ferrobase.change_hourly() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op <> 'INSERT' then
    delete from _supavisor.hourly h where h.function = old.function;
  end if;
  if tg_op = 'DELETE' then
    return old;
  end if;
  insert into _supavisor.hourly (function) values (new.function) on conflict do nothing;
  if not found then
    return null;
  end if;
  return new;
end $$;
revoke execute on function ferrobase.hourly_functions(), ferrobase.change_hourly() from public;
grant execute on function ferrobase.hourly_functions() to service_role;
create or replace trigger change_hourly instead of insert or update or delete on ferrobase.hourly
  for each row execute function ferrobase.change_hourly();
-- Comparisons of databases leave a trigger of an extension out by this.
alter trigger change_hourly on ferrobase.hourly depends on extension plpgsql;
grant select on ferrobase.hourly to service_role;

-- The tables are protected only by grants: a remote `db reset` of the Supabase CLI drops all policies as `postgres`,
-- and fails at the first one that it may not drop. Databases of earlier versions have some.
do $$
declare
  item record;
begin
  for item in
    select c.oid::regclass as name, p.polname
    from pg_catalog.pg_class c
    left join pg_catalog.pg_policy p on p.polrelid = c.oid
    where c.relnamespace = '_supavisor'::regnamespace and c.relkind = 'r' and c.relrowsecurity
  loop
    if item.polname is not null then
      execute pg_catalog.format('drop policy %I on %s', item.polname, item.name);
    end if;
    execute pg_catalog.format('alter table %s disable row level security', item.name);
  end loop;
end $$;

-- Calls each of them and returns the failed ones with the reason. A failure rolls back only that call. Runs with the
-- caller's rights. Instances of earlier versions call this; the time for all of them is that of one statement.
create or replace function ferrobase.call_hourly() returns table (function text, error text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  known regproc;
begin
  for function in select h.function from _supavisor.hourly h order by 1 loop
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
    grant select, update on _supavisor.sms_rules to postgres;
    grant select, trigger on _supavisor.sms_stopped to postgres;
    grant select, delete on _supavisor.sms_counts to postgres;
    grant execute on function ferrobase.call_hourly() to postgres;
    grant select on _supavisor.outbox, _supavisor.inbox to postgres;
    grant select on _supavisor.hourly to postgres;
    grant execute on function ferrobase.hourly_functions() to postgres;
    grant select, insert, update, delete on ferrobase.hourly to postgres;
  end if;
end $$;
