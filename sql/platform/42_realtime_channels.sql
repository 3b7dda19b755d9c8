-- Schema realtime: what the server's channels need of the database. Shape: supabase/realtime priv/repo/tenant_schema.

set local role supabase_realtime_admin;

-- The server's login; functions that are only for the server are granted individually.
grant usage on schema realtime to authenticator;

-- Where replays look.
create index if not exists messages_inserted_at_topic_index on realtime.messages (inserted_at desc, topic)
  where extension = 'broadcast' and private;

-- Broadcasts of clients that are stored: they were delivered already, and may be kept for a shorter time than their partition. Asked
-- first, because adding a column needs the table alone.
do $$
declare
  known constant name[] := array(select attname from pg_catalog.pg_attribute
    where attrelid = 'realtime.messages'::pg_catalog.regclass and not attisdropped);
begin
  if not 'skip_broadcast' = any (known) then
    alter table realtime.messages add column skip_broadcast boolean not null default false;
  end if;
  if not 'expires_at' = any (known) then
    alter table realtime.messages add column expires_at timestamp;
  end if;
end $$;

-- Makes the partition of a day if it is missing; days are UTC. Only for days around now, because everybody who may send
-- can call it.
create or replace function realtime.ensure_partition(day date) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  partition constant text := 'messages_' || to_char(day, 'YYYY_MM_DD');
  today constant date := (now() at time zone 'utc')::date;
begin
  if day not between today - 3 and today + 3 then
    return;
  end if;
  if pg_catalog.to_regclass('realtime.' || partition) is null then
    execute pg_catalog.format(
      'create table if not exists realtime.%I partition of realtime.messages for values from (%L) to (%L)',
      partition, day, day + 1);
    execute pg_catalog.format('alter table realtime.%I enable row level security', partition);
  end if;
exception when duplicate_table or invalid_object_definition then
  null; -- another session was first
end $$;

-- From yesterday to three days from now; what is older than 72 hours goes. Both need the table alone: while a dump reads it,
-- messages and joins must not wait behind this.
create or replace function realtime.keep_partitions() returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  today constant date := (now() at time zone 'utc')::date;
  old text;
begin
  for n in -1 .. 3 loop
    perform realtime.ensure_partition(today + n);
  end loop;
  for old in
    select c.relname from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'realtime.messages'::pg_catalog.regclass
      and c.relname ~ '^messages_[0-9]{4}_[0-9]{2}_[0-9]{2}$'
      and pg_catalog.to_date(pg_catalog.right(c.relname, 10), 'YYYY_MM_DD') < today - 3
  loop
    begin
      execute pg_catalog.format('drop table if exists realtime.%I', old);
    exception when lock_not_available then
      return; -- the next time
    end;
  end loop;
end $$;
revoke execute on function realtime.keep_partitions() from public;
grant execute on function realtime.keep_partitions() to authenticator;
do $$
begin
  perform realtime.keep_partitions();
exception when lock_not_available then
  null; -- the server does it
end $$;

-- Inserts rows that a caller then tries to read, in a transaction that is rolled back, to check policies.
create or replace function realtime.try_messages(topic text, extensions text[], ids uuid[]) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform realtime.ensure_partition((now() at time zone 'utc')::date);
  insert into realtime.messages (id, topic, extension, inserted_at)
  select i.id, try_messages.topic, e.extension, now() at time zone 'utc'
  from unnest(extensions) with ordinality e(extension, n) join unnest(ids) with ordinality i(id, n) using (n);
end $$;
revoke execute on function realtime.try_messages(text, text[], uuid[]) from public;
grant execute on function realtime.try_messages(text, text[], uuid[]) to authenticator;

-- Stores a private broadcast of a client for so many seconds, unless the table has reached its greatest size. Returns its id. The
-- server asks only for those who may store broadcasts of the topic.
create or replace function realtime.keep_message(
  topic text, event text, payload jsonb, binary_payload bytea, seconds bigint, most_bytes bigint
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  sent_at constant timestamp := now() at time zone 'utc';
  kept uuid;
begin
  if (select coalesce(sum(pg_total_relation_size(inhrelid)), 0) from pg_inherits
      where inhparent = 'realtime.messages'::regclass) >= most_bytes then
    return null;
  end if;
  perform realtime.ensure_partition(sent_at::date);
  insert into realtime.messages
    (topic, event, payload, binary_payload, private, extension, skip_broadcast, inserted_at, updated_at, expires_at)
  values
    (keep_message.topic, keep_message.event, keep_message.payload, keep_message.binary_payload, true, 'broadcast', true,
     sent_at, sent_at, sent_at + make_interval(secs => seconds))
  returning id into kept;
  return kept::text;
end $$;
revoke execute on function realtime.keep_message(text, text, jsonb, bytea, bigint, bigint) from public;
grant execute on function realtime.keep_message(text, text, jsonb, bytea, bigint, bigint) to authenticator;

-- The newest private broadcasts of a topic since then (milliseconds since 1970), oldest first. The server asks only for
-- those who may read the topic.
create or replace function realtime.stored_messages(topic text, since bigint, most bigint)
returns table (id text, event text, payload text, binary_payload text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id::text, m.event, m.payload::text, pg_catalog.encode(m.binary_payload, 'base64')
  from (
    select * from realtime.messages m
    where m.topic = $1 and m.private and m.extension = 'broadcast' and m.event is not null
      and (m.payload is not null or m.binary_payload is not null)
      and (m.expires_at is null or m.expires_at > now() at time zone 'utc')
      and m.inserted_at > pg_catalog.to_timestamp($2 / 1000.0) at time zone 'utc'
    order by m.inserted_at desc limit least(greatest($3, 0), 25)
  ) m
  order by m.inserted_at
$$;
revoke execute on function realtime.stored_messages(text, bigint, bigint) from public;
grant execute on function realtime.stored_messages(text, bigint, bigint) to authenticator;

-- The private broadcasts of a topic that may have been committed after this one, oldest first, including itself: at
-- most a number of messages and bytes; `is_within` is false for the first one left out. A message has the time at which
-- its transaction began, so those of the ten seconds before are included. Empty if the named message is no longer
-- stored.
create or replace function realtime.stored_after(topic text, after uuid, most bigint, bytes bigint)
returns table (id text, event text, payload text, binary_payload text, is_within boolean)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.id::text, m.event, m.payload::text, pg_catalog.encode(m.binary_payload, 'base64'),
    row_number() over w <= $3 and sum(octet_length(coalesce(m.payload::text, '')) + octet_length(coalesce(m.binary_payload, ''))) over w <= $4
  from (
    select later.*
    from realtime.messages named join realtime.messages later
      on later.topic = named.topic and later.inserted_at > named.inserted_at - interval '10 seconds'
    where named.id = $2 and named.topic = $1 and named.private
      and later.private and later.extension = 'broadcast' and later.event is not null
      and (later.payload is not null or later.binary_payload is not null)
      and (later.expires_at is null or later.expires_at > now() at time zone 'utc' or later.id = named.id)
    order by later.inserted_at, later.id limit greatest($3, 0) + 1
  ) m
  window w as (order by m.inserted_at, m.id)
  order by m.inserted_at, m.id
$$;
revoke execute on function realtime.stored_after(text, uuid, bigint, bigint) from public;
grant execute on function realtime.stored_after(text, uuid, bigint, bigint) to authenticator;

-- Waits up to two seconds until transactions whose commits were read from the log are visible to others; returns
-- whether they are. The log is briefly ahead of visibility, with a synchronous standby until that has answered. `xids`
-- have 32 bits.
create or replace function realtime.await_commits(xids bigint[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  giving_up constant timestamptz := clock_timestamp() + interval '2 seconds';
  seen pg_snapshot;
  next bigint;
begin
  loop
    seen := pg_current_snapshot();
    next := pg_snapshot_xmax(seen)::text::bigint;
    -- The distance of each to the next transaction; half of all 32-bit numbers are ahead of it.
    if not exists (
      select from unnest(xids) xid, lateral (select ((next - xid) % 4294967296 + 4294967296) % 4294967296 as behind) b
      where behind not between 1 and 2147483647
        or not pg_visible_in_snapshot(greatest(next - behind, 3)::text::xid8, seen)
    ) then
      return true;
    end if;
    if clock_timestamp() > giving_up then
      return false;
    end if;
    perform pg_sleep(0.001);
  end loop;
end $$;
revoke execute on function realtime.await_commits(bigint[]) from public;
grant execute on function realtime.await_commits(bigint[]) to authenticator;

-- Like realtime.send, with bytes as the payload.
create or replace function realtime.send_binary(payload bytea, event text, topic text, private boolean default true)
returns void
language plpgsql
as $$
declare
  sent_at constant timestamp := now() at time zone 'utc';
begin
  perform set_config('realtime.topic', topic, true);
  perform realtime.ensure_partition(sent_at::date);
  insert into realtime.messages (id, binary_payload, event, topic, private, extension, inserted_at, updated_at)
  values (gen_random_uuid(), payload, event, topic, private, 'broadcast', sent_at, sent_at);
exception when others then
  raise warning 'WarnSendingBroadcastMessage: %', sqlerrm;
end $$;

reset role;

-- Broadcasts of the database are followed through this publication.
do $$
begin
  if not exists (select from pg_catalog.pg_publication where pubname = 'supabase_realtime_messages_publication') then
    create publication supabase_realtime_messages_publication for table realtime.messages
      with (publish = 'insert', publish_via_partition_root = true);
  end if;
exception when insufficient_privilege then
  raise warning 'publication supabase_realtime_messages_publication could not be created';
end $$;
