-- The audit log of administrators: changes by service keys and by commands, one row for each minute and kind of change.
select _supavisor.take_over('admin_audit');

create table if not exists _supavisor.admin_audit (
  id         bigint generated always as identity primary key,
  -- The beginning of the minute.
  at         timestamptz not null,
  -- The machine that noted it.
  instance   text not null,
  -- 'key …' with the first digits of the key's SHA-256, 's3 …' with an access key's id, 'user …' of the machine.
  actor      text not null,
  address    text not null,
  -- The method of a request, or the command.
  action     text not null,
  -- Path of a table, function, account or bucket, or what the command worked on.
  target     text not null,
  -- '2xx' and so on, or 'ok' and 'failed'.
  outcome    text not null,
  count      bigint not null default 1,
  -- Of the first of them; the access log has all.
  request_id text not null default ''
);
create unique index if not exists admin_audit_entry
  on _supavisor.admin_audit (at, instance, actor, address, action, target, outcome);

-- The server adds to the log by these functions and can do nothing else with it.
create or replace function ferrobase.note_admin_actions(entries jsonb) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into _supavisor.admin_audit as known (at, instance, actor, address, action, target, outcome, count, request_id)
  select pg_catalog.to_timestamp(e.at), e.instance, e.actor, e.address, e.action, e.target, e.outcome, e.count, e.request_id
  from pg_catalog.jsonb_to_recordset(entries)
    as e (at bigint, instance text, actor text, address text, action text, target text, outcome text, count bigint, request_id text)
  on conflict (at, instance, actor, address, action, target, outcome)
  do update set count = known.count + excluded.count;
$$;
revoke execute on function ferrobase.note_admin_actions(jsonb) from public;
grant execute on function ferrobase.note_admin_actions(jsonb) to supabase_ferrobase_admin;

-- Removes what is older than so many days, 30 at least: whoever takes over the server cannot empty the log with it.
create or replace function ferrobase.sweep_admin_audit(days integer) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  delete from _supavisor.admin_audit a
  where a.at < pg_catalog.now() - pg_catalog.make_interval(days => greatest(sweep_admin_audit.days, 30));
$$;
revoke execute on function ferrobase.sweep_admin_audit(integer) from public;
grant execute on function ferrobase.sweep_admin_audit(integer) to supabase_ferrobase_admin;

do $$
begin
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant select on _supavisor.admin_audit to postgres;
  end if;
end $$;
