-- Jobs by schedule. The names are citusdata/pg_cron's; the server runs the schedule (`server/src/jobs`), in one
-- instance at a time, and each job runs as the role that created it.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create schema if not exists cron;

create sequence cron.jobid_seq;
create sequence cron.runid_seq;

create table cron.job (
  jobid    bigint primary key default nextval('cron.jobid_seq'),
  schedule text not null,
  command  text not null,
  nodename text not null default 'localhost',
  nodeport integer not null default inet_server_port(),
  database text not null default current_database(),
  username text not null default current_user,
  active   boolean not null default true,
  jobname  text,
  constraint jobname_username_uniq unique (jobname, username)
);
alter table cron.job enable row level security;
create policy cron_job_policy on cron.job using (username = current_user);

create table cron.job_run_details (
  jobid          bigint,
  runid          bigint primary key default nextval('cron.runid_seq'),
  job_pid        integer,
  database       text,
  username       text,
  command        text,
  status         text,
  return_message text,
  start_time     timestamptz,
  end_time       timestamptz
);
alter table cron.job_run_details enable row level security;
create policy cron_job_run_details_policy on cron.job_run_details using (username = current_user);

-- Five fields of cron, a nickname, or a number of seconds from 1 to 59.
create function cron._is_schedule(schedule text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  fields constant text[] := pg_catalog.regexp_split_to_array(pg_catalog.btrim(schedule), '\s+');
  lowest constant integer[] := array[0, 0, 1, 1, 0];
  highest constant integer[] := array[59, 23, 31, 12, 7];
  months constant text := 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec';
  days constant text := 'sun|mon|tue|wed|thu|fri|sat';
  item text;
  parts text[];
  bounds text[];
begin
  if schedule ~* '^\s*[1-5]?[0-9]\s+seconds?\s*$' then
    return (fields[1])::integer between 1 and 59;
  end if;
  if pg_catalog.lower(pg_catalog.btrim(schedule)) in
       ('@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly', '@reboot') then
    return true;
  end if;
  if pg_catalog.cardinality(fields) <> 5 then
    return false;
  end if;
  for field in 1 .. 5 loop
    foreach item in array pg_catalog.string_to_array(pg_catalog.lower(fields[field]), ',') loop
      if field = 4 then
        for n in 1 .. 12 loop
          item := pg_catalog.replace(item, pg_catalog.split_part(months, '|', n), n::text);
        end loop;
      elsif field = 5 then
        for n in 1 .. 7 loop
          item := pg_catalog.replace(item, pg_catalog.split_part(days, '|', n), (n - 1)::text);
        end loop;
      end if;
      continue when field = 3 and item = '$';
      parts := pg_catalog.string_to_array(item, '/');
      if pg_catalog.cardinality(parts) > 2 or (parts[2] is not null and (parts[2] !~ '^\d{1,3}$' or parts[2]::integer = 0)) then
        return false;
      end if;
      continue when parts[1] = '*';
      bounds := pg_catalog.string_to_array(parts[1], '-');
      if pg_catalog.cardinality(bounds) not between 1 and 2 then
        return false;
      end if;
      for n in 1 .. pg_catalog.cardinality(bounds) loop
        if bounds[n] !~ '^\d{1,2}$' or bounds[n]::integer not between lowest[field] and highest[field] then
          return false;
        end if;
      end loop;
      if bounds[2] is not null and bounds[2]::integer < bounds[1]::integer then
        return false;
      end if;
    end loop;
  end loop;
  return true;
end $$;

create function cron._require_schedule(schedule text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if schedule is null or not cron._is_schedule(schedule) then
    raise exception 'invalid schedule: %', schedule
      using errcode = '22023', hint = 'Use cron format (e.g. 5 4 * * *), or interval format ''[1-59] seconds''';
  end if;
end $$;

create function cron._require_user(username text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  can_log_in boolean;
begin
  select rolcanlogin into can_log_in from pg_catalog.pg_roles where rolname = username;
  if can_log_in is null then
    raise exception 'role "%" does not exist', username using errcode = '42704';
  end if;
  if not can_log_in then
    raise exception 'role "%" can not log in', username using errcode = '42501',
      detail = 'Jobs may only be run by roles that have the LOGIN attribute.';
  end if;
end $$;

-- These run with the caller's rights. If called in a security definer function, as requests do, the job belongs to that
-- function's owner.
create function cron.schedule(schedule text, command text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  id bigint;
  caller constant text := current_user;
begin
  perform cron._require_schedule(schedule);
  perform cron._require_user(caller);
  insert into cron.job (schedule, command, username) values (schedule, command, caller) returning jobid into id;
  return id;
end $$;

create function cron.schedule(job_name text, schedule text, command text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  id bigint;
  caller constant text := current_user;
begin
  if job_name is null then
    raise exception 'job_name can not be NULL' using errcode = '22023', hint = 'Use the cron.schedule(schedule, command) function instead.';
  end if;
  perform cron._require_schedule(schedule);
  perform cron._require_user(caller);
  insert into cron.job (jobname, schedule, command, username) values (job_name, schedule, command, caller)
  on conflict on constraint jobname_username_uniq do update
    set schedule = excluded.schedule, command = excluded.command, active = true
  returning jobid into id;
  return id;
end $$;

create function cron.schedule_in_database(
  job_name text, schedule text, command text, database text, username text default null, active boolean default true
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  id bigint;
  runs_as constant text := coalesce(schedule_in_database.username, current_user);
begin
  if job_name is null then
    raise exception 'job_name can not be NULL' using errcode = '22023';
  end if;
  perform cron._require_schedule(schedule);
  perform cron._require_user(runs_as);
  if not pg_catalog.pg_has_role(current_user, runs_as, 'member') then
    raise exception 'must be superuser to create a job for another role' using errcode = '42501';
  end if;
  insert into cron.job (jobname, schedule, command, database, username, active)
  values (job_name, schedule, command, database, runs_as, schedule_in_database.active)
  on conflict on constraint jobname_username_uniq do update
    set schedule = excluded.schedule, command = excluded.command, database = excluded.database, active = excluded.active
  returning jobid into id;
  return id;
end $$;

create function cron.unschedule(job_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from cron.job where jobid = job_id and pg_catalog.pg_has_role(current_user, username, 'member');
  if not found then
    raise exception 'could not find valid entry for job %', job_id using errcode = 'P0001';
  end if;
  return true;
end $$;

create function cron.unschedule(job_name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from cron.job where jobname = job_name and username = current_user;
  if not found then
    raise exception 'could not find valid entry for job ''%''', job_name using errcode = 'P0001';
  end if;
  return true;
end $$;

create function cron.alter_job(
  job_id bigint, schedule text default null, command text default null, database text default null,
  username text default null, active boolean default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nulls(schedule, command, database, username, active) = 5 then
    raise exception 'no updates specified' using errcode = 'P0001',
      hint = 'You must specify at least one job attribute to change when calling alter_job';
  end if;
  if schedule is not null then
    perform cron._require_schedule(schedule);
  end if;
  if username is not null then
    perform cron._require_user(username);
    if not pg_catalog.pg_has_role(current_user, username, 'member') then
      raise exception 'must be superuser to alter username' using errcode = '42501';
    end if;
  end if;
  update cron.job j
  set schedule = coalesce(alter_job.schedule, j.schedule), command = coalesce(alter_job.command, j.command),
      database = coalesce(alter_job.database, j.database), username = coalesce(alter_job.username, j.username),
      active = coalesce(alter_job.active, j.active)
  where j.jobid = job_id and pg_catalog.pg_has_role(current_user, j.username, 'member');
  if not found then
    raise exception 'Job % does not exist or you don''t own it', job_id using errcode = 'P0001';
  end if;
end $$;

-- Tells the server that the schedule has changed.
create function cron._tell() returns trigger
language plpgsql
as $$
begin
  perform pg_catalog.pg_notify('ferrobase_cron', '');
  return null;
end $$;
create trigger tell after insert or update or delete on cron.job for each statement execute function cron._tell();

revoke execute on function cron.schedule_in_database(text, text, text, text, text, boolean),
  cron.alter_job(bigint, text, text, text, text, boolean) from public;
grant select, delete on cron.job_run_details to public;
do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant usage on schema cron to postgres with grant option;
    grant select, insert, update, delete on cron.job to postgres with grant option;
    grant execute on all functions in schema cron to postgres with grant option;
    grant usage on all sequences in schema cron to postgres;
    -- A dump of jobs sets it.
    grant update on sequence cron.jobid_seq to postgres;
  end if;
  -- The role with which the server runs the schedule.
  if exists (select from pg_catalog.pg_roles where rolname = 'supabase_ferrobase_admin') then
    grant usage on schema cron to supabase_ferrobase_admin;
    grant select on cron.job to supabase_ferrobase_admin;
    grant select, insert, update on cron.job_run_details to supabase_ferrobase_admin;
    grant usage on sequence cron.runid_seq to supabase_ferrobase_admin;
    create policy ferrobase_reads_jobs on cron.job for select to supabase_ferrobase_admin using (true);
    create policy ferrobase_records_runs on cron.job_run_details to supabase_ferrobase_admin using (true);
  end if;
end $$;

select pg_catalog.pg_extension_config_dump('cron.job', '');
select pg_catalog.pg_extension_config_dump('cron.jobid_seq', '');
comment on table cron.job is 'Jobs that Ferrobase''s server runs';
