-- Supabase's PostgreSQL image loads the schema of 2018 before Supabase Auth migrates it. What this brings up to date there
-- are the names and columns that the files after it expect; everywhere else it finds nothing to do.

-- Where this file is recorded. Supabase Auth's own table holds 14 characters: too few for the names of these files.
create table if not exists auth.schema_migrations (
  version varchar(255) not null constraint schema_migrations_pkey primary key
);
alter table auth.schema_migrations alter column version type varchar(255);

do $$
declare
  is_plain boolean;
begin
  if to_regclass('auth.users') is null then
    return;
  end if;
  select is_generated = 'NEVER' into is_plain from information_schema.columns
    where table_schema = 'auth' and table_name = 'users' and column_name = 'confirmed_at';
  if is_plain and not exists (select from information_schema.columns
      where table_schema = 'auth' and table_name = 'users' and column_name = 'email_confirmed_at') then
    alter table auth.users rename column confirmed_at to email_confirmed_at;
  end if;
  if exists (select from information_schema.columns
      where table_schema = 'auth' and table_name = 'users' and column_name = 'email_change_token') then
    alter table auth.users rename column email_change_token to email_change_token_new;
  end if;
  alter table auth.users
    add column if not exists phone text default null,
    add column if not exists phone_confirmed_at timestamptz,
    add column if not exists phone_change text default '',
    add column if not exists phone_change_token varchar(255) default '',
    add column if not exists phone_change_sent_at timestamptz,
    add column if not exists email_change_token_current varchar(255) default '',
    add column if not exists email_change_confirm_status smallint default 0;
  alter table auth.users
    add column if not exists confirmed_at timestamptz
      generated always as (least(email_confirmed_at, phone_confirmed_at)) stored;
  if not exists (select from pg_constraint where conrelid = 'auth.users'::regclass and conname = 'users_phone_key') then
    alter table auth.users add constraint users_phone_key unique (phone);
  end if;
  if not exists (select from pg_constraint
      where conrelid = 'auth.users'::regclass and conname = 'users_email_change_confirm_status_check') then
    alter table auth.users add constraint users_email_change_confirm_status_check
      check (email_change_confirm_status between 0 and 2);
  end if;
  -- An address is unique among accounts that do not come by single sign-on; an index beside it says so.
  alter table auth.users drop constraint if exists users_email_key;
  -- By the address as it is written, not in lower case.
  if exists (select from pg_indexes where schemaname = 'auth' and indexname = 'users_instance_id_email_idx'
      and indexdef not like '%lower%') then
    drop index auth.users_instance_id_email_idx;
  end if;
end $$;

do $$
begin
  if to_regclass('auth.refresh_tokens') is null then
    return;
  end if;
  -- What session_id refers to is made later, and so is the reference.
  alter table auth.refresh_tokens
    add column if not exists parent varchar(255),
    add column if not exists session_id uuid;
  if not exists (select from pg_constraint
      where conrelid = 'auth.refresh_tokens'::regclass and conname = 'refresh_tokens_token_unique') then
    alter table auth.refresh_tokens add constraint refresh_tokens_token_unique unique (token);
  end if;
end $$;
