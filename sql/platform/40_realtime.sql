-- Schema realtime: what migrations refer to (policies on realtime.messages, realtime.send in triggers).
-- Shape: supabase/realtime lib/realtime/tenants/repo/migrations.

set local role supabase_realtime_admin;

create table if not exists realtime.messages (
  topic          text not null,
  extension      text not null,
  payload        jsonb,
  event          text,
  private        boolean default false,
  updated_at     timestamp not null default now(),
  inserted_at    timestamp not null default now(),
  id             uuid not null default gen_random_uuid(),
  binary_payload bytea,
  primary key (id, inserted_at)
) partition by range (inserted_at);

alter table realtime.messages enable row level security;
grant select, insert, update on realtime.messages to anon, authenticated, service_role;

-- The topic of the current transaction's channel.
create or replace function realtime.topic() returns text
language sql stable
as $$
  select nullif(current_setting('realtime.topic', true), '')
$$;

-- Makes the partition of a day if it is missing; days are UTC.
create or replace function realtime.ensure_partition(day date) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  partition constant text := 'messages_' || to_char(day, 'YYYY_MM_DD');
begin
  if pg_catalog.to_regclass('realtime.' || partition) is null then
    execute pg_catalog.format(
      'create table if not exists realtime.%I partition of realtime.messages for values from (%L) to (%L)',
      partition, day, day + 1);
    execute pg_catalog.format('alter table realtime.%I enable row level security', partition);
  end if;
exception when duplicate_table or invalid_object_definition then
  null; -- another session was first
end $$;
revoke execute on function realtime.ensure_partition(date) from public;
grant execute on function realtime.ensure_partition(date) to anon, authenticated, service_role;

-- Broadcasts from SQL. A failure is a warning and never the caller's error.
create or replace function realtime.send(payload jsonb, event text, topic text, private boolean default true)
returns void
language plpgsql
as $$
declare
  -- The row's own, also where the payload has an id: one transaction may send about one row several times.
  message_id constant uuid := gen_random_uuid();
  sent_at constant timestamp := now() at time zone 'utc';
begin
  if not payload ? 'id' then
    -- Fails for anything but an object.
    payload := jsonb_set(payload, '{id}', to_jsonb(message_id));
  end if;
  perform set_config('realtime.topic', topic, true);
  perform realtime.ensure_partition(sent_at::date);
  insert into realtime.messages (id, payload, event, topic, private, extension, inserted_at, updated_at)
  values (message_id, payload, event, topic, private, 'broadcast', sent_at, sent_at);
exception when others then
  raise warning 'WarnSendingBroadcastMessage: %', sqlerrm;
end $$;

-- For triggers: broadcasts what happened to a row on a private topic.
create or replace function realtime.broadcast_changes(
  topic_name text,
  event_name text,
  operation text,
  table_name text,
  table_schema text,
  new record,
  old record,
  level text default 'ROW'
) returns void
language plpgsql
as $$
begin
  if level = 'STATEMENT' then
    raise exception 'Failed to process the row: function can only be triggered for each row, not for each statement';
  end if;
  if (operation in ('INSERT', 'UPDATE', 'DELETE')) is not true then
    raise exception 'Failed to process the row: Unexpected operation type: %', operation;
  end if;
  perform realtime.send(
    jsonb_build_object(
      'old_record', to_jsonb(old), 'record', to_jsonb(new),
      'operation', operation, 'table', table_name, 'schema', table_schema),
    event_name, topic_name);
end $$;

reset role;
