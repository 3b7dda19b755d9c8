-- Schema ferrobase: what the server keeps for itself. The schema and its bookkeeping tables are made by the migrator.

grant usage on schema ferrobase to service_role, supabase_auth_admin, ferrobase_admin;

-- A project's functions queue mail and name what is to be called every hour; the demo data is recorded by its owner.
do $$
begin
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant usage on schema ferrobase to postgres;
    grant select, insert, update, delete on ferrobase.seed_files, ferrobase.seeded_users to postgres;
  end if;
end $$;

-- Whose database this is: the project that `ferrobase start` made it for, and whether its first start came to the end.
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
  -- Set when the server has given up; such rows stay for a person to look at.
  failed_at       timestamptz,
  last_error      text
);
create index if not exists outbox_due on ferrobase.outbox (next_attempt_at) where failed_at is null;
alter table ferrobase.outbox enable row level security;
create or replace function ferrobase.notify_outbox() returns trigger
language plpgsql
as $$
begin
  notify ferrobase_outbox;
  return null;
end $$;
create or replace trigger outbox_notify after insert on ferrobase.outbox
  for each statement execute function ferrobase.notify_outbox();

-- Queues a mail: delivered after commit, at least once, never if the transaction rolls back. Returns the outbox id.
-- No argument can make it fail: what cannot be delivered is found out by the server, not by the caller's transaction.
-- `headers` holds further header lines by name, e.g. {"List-Unsubscribe": "<https://…>"}.
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
alter table ferrobase.inbox enable row level security;

grant select, insert, update, delete on ferrobase.outbox, ferrobase.inbox to ferrobase_admin;
do $$
begin
  create policy server on ferrobase.outbox to ferrobase_admin using (true) with check (true);
  create policy server on ferrobase.inbox to ferrobase_admin using (true) with check (true);
exception when duplicate_object then
  null;
end $$;

-- What the server calls every hour, as service_role and without arguments: functions of the project by schema-qualified name.
-- `insert into ferrobase.hourly (function) values ('public.sweep_something')` in a migration, and grant service_role to execute it.
create table if not exists ferrobase.hourly (
  function text primary key
);
alter table ferrobase.hourly enable row level security;
grant select on ferrobase.hourly to service_role;
do $$
begin
  create policy server on ferrobase.hourly for select to service_role using (true);
exception when duplicate_object then
  null;
end $$;

-- Calls each of them; those that failed and why. A failure undoes that one call. Runs with the caller's rights.
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
    grant execute on function ferrobase.call_hourly() to postgres;
    grant select on ferrobase.outbox, ferrobase.inbox to postgres;
    grant select, insert, update, delete on ferrobase.hourly to postgres;
  end if;
end $$;
