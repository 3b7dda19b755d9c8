-- Message queues in tables: a message is leased for a time (`vt`) and comes back unless it is deleted or archived. The
-- names and shapes are those of pgmq 1.5.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create table pgmq.meta (
  queue_name     varchar primary key,
  is_partitioned boolean not null,
  is_unlogged    boolean not null,
  created_at     timestamptz not null default now()
);

create type pgmq.message_record as (
  msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb, headers jsonb);
create type pgmq.queue_record as (
  queue_name varchar, is_partitioned boolean, is_unlogged boolean, created_at timestamptz);
create type pgmq.metrics_result as (
  queue_name text, queue_length bigint, newest_msg_age_sec integer, oldest_msg_age_sec integer, total_messages bigint,
  scrape_time timestamptz, queue_visible_length bigint);

-- Name of a queue's table ('q') or archive ('a').
create function pgmq.format_table_name(queue_name text, prefix text) returns text
language plpgsql immutable
as $$
begin
  if queue_name ~ '\$|;|--|''' then
    raise exception 'queue name contains invalid characters: $, ;, --, or \''';
  end if;
  return lower(prefix || '_' || queue_name);
end $$;

create function pgmq.validate_queue_name(queue_name text) returns void
language plpgsql
as $$
begin
  if length(queue_name) > 47 then
    raise exception 'queue name is too long, maximum length is 47 characters';
  end if;
end $$;

create function pgmq._make(queue_name text, is_unlogged boolean) returns void
language plpgsql
as $$
declare
  queue constant text := pgmq.format_table_name(queue_name, 'q');
  archive constant text := pgmq.format_table_name(queue_name, 'a');
begin
  perform pgmq.validate_queue_name(queue_name);
  perform pg_advisory_xact_lock(hashtext('pgmq.' || queue_name));
  execute format(
    'create %s table if not exists pgmq.%I (
       msg_id bigint primary key generated always as identity, read_ct integer not null default 0,
       enqueued_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb)',
    case when is_unlogged then 'unlogged' else '' end, queue);
  execute format(
    'create table if not exists pgmq.%I (
       msg_id bigint primary key, read_ct integer not null default 0, enqueued_at timestamptz not null default now(),
       archived_at timestamptz not null default now(), vt timestamptz not null, message jsonb, headers jsonb)', archive);
  execute format('create index if not exists %I on pgmq.%I (vt asc)', queue || '_vt_idx', queue);
  execute format('create index if not exists %I on pgmq.%I (archived_at)', 'archived_at_idx_' || queue_name, archive);
  insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values (queue_name, false, is_unlogged)
  on conflict do nothing;
end $$;

create function pgmq.create(queue_name text) returns void
language sql as $$ select pgmq._make(queue_name, false) $$;
create function pgmq.create_non_partitioned(queue_name text) returns void
language sql as $$ select pgmq._make(queue_name, false) $$;
create function pgmq.create_unlogged(queue_name text) returns void
language sql as $$ select pgmq._make(queue_name, true) $$;
create function pgmq.create_partitioned(
  queue_name text, partition_interval text default '10000', retention_interval text default '100000'
) returns void
language plpgsql
as $$
begin
  raise exception 'pg_partman is required for partitioned queues';
end $$;

create function pgmq.drop_queue(queue_name text) returns boolean
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(hashtext('pgmq.' || queue_name));
  delete from pgmq.meta m where m.queue_name = drop_queue.queue_name;
  if not found then
    raise notice 'pgmq queue `%` does not exist', queue_name;
    return false;
  end if;
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'q'));
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'a'));
  return true;
end $$;
create function pgmq.drop_queue(queue_name text, partitioned boolean) returns boolean
language sql as $$ select pgmq.drop_queue(queue_name) $$;

create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz) returns setof bigint
language plpgsql
as $$
begin
  if headers is not null and cardinality(headers) <> cardinality(msgs) then
    raise exception 'headers array length does not match msgs array length';
  end if;
  return query execute format(
    'insert into pgmq.%I (vt, message, headers)
     select $2, m, h from unnest($1, coalesce($3, array_fill(null::jsonb, array[cardinality($1)])))
       with ordinality as items (m, h, place) order by place returning msg_id',
    pgmq.format_table_name(queue_name, 'q')) using msgs, delay, headers;
end $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[]) returns setof bigint
language sql as $$ select pgmq.send_batch(queue_name, msgs, null, clock_timestamp()) $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[]) returns setof bigint
language sql as $$ select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp()) $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay integer) returns setof bigint
language sql as $$ select pgmq.send_batch(queue_name, msgs, null, clock_timestamp() + make_interval(secs => delay)) $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay timestamptz) returns setof bigint
language sql as $$ select pgmq.send_batch(queue_name, msgs, null, delay) $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay integer) returns setof bigint
language sql as $$ select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp() + make_interval(secs => delay)) $$;

create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay timestamptz) returns setof bigint
language sql as $$ select pgmq.send_batch(queue_name, array[msg], array[headers], delay) $$;
create function pgmq.send(queue_name text, msg jsonb) returns setof bigint
language sql as $$ select pgmq.send(queue_name, msg, null, clock_timestamp()) $$;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb) returns setof bigint
language sql as $$ select pgmq.send(queue_name, msg, headers, clock_timestamp()) $$;
create function pgmq.send(queue_name text, msg jsonb, delay integer) returns setof bigint
language sql as $$ select pgmq.send(queue_name, msg, null, clock_timestamp() + make_interval(secs => delay)) $$;
create function pgmq.send(queue_name text, msg jsonb, delay timestamptz) returns setof bigint
language sql as $$ select pgmq.send(queue_name, msg, null, delay) $$;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay integer) returns setof bigint
language sql as $$ select pgmq.send(queue_name, msg, headers, clock_timestamp() + make_interval(secs => delay)) $$;

create function pgmq.read(queue_name text, vt integer, qty integer, conditional jsonb default '{}')
returns setof pgmq.message_record
language plpgsql
as $$
begin
  return query execute format(
    'with due as (
       select msg_id from pgmq.%1$I
       where vt <= clock_timestamp() and ($3 = ''{}'' or message @> $3)
       order by msg_id limit $1 for update skip locked
     )
     update pgmq.%1$I m set vt = clock_timestamp() + make_interval(secs => $2), read_ct = read_ct + 1
     from due where m.msg_id = due.msg_id
     returning m.msg_id, m.read_ct, m.enqueued_at, m.vt, m.message, m.headers',
    pgmq.format_table_name(queue_name, 'q')) using qty, vt, coalesce(conditional, '{}');
end $$;

create function pgmq.read_with_poll(
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100,
  conditional jsonb default '{}'
) returns setof pgmq.message_record
language plpgsql
as $$
declare
  given_up constant timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
begin
  loop
    return query select * from pgmq.read(queue_name, vt, qty, conditional);
    exit when found or clock_timestamp() >= given_up;
    perform pg_sleep(poll_interval_ms / 1000.0);
  end loop;
end $$;

create function pgmq.pop(queue_name text) returns setof pgmq.message_record
language plpgsql
as $$
begin
  return query execute format(
    'delete from pgmq.%1$I where msg_id = (
       select msg_id from pgmq.%1$I where vt <= clock_timestamp() order by msg_id limit 1 for update skip locked)
     returning msg_id, read_ct, enqueued_at, vt, message, headers', pgmq.format_table_name(queue_name, 'q'));
end $$;

create function pgmq.delete(queue_name text, msg_ids bigint[]) returns setof bigint
language plpgsql
as $$
begin
  return query execute format('delete from pgmq.%I where msg_id = any ($1) returning msg_id',
                              pgmq.format_table_name(queue_name, 'q')) using msg_ids;
end $$;
create function pgmq.delete(queue_name text, msg_id bigint) returns boolean
language sql as $$ select exists (select from pgmq.delete(queue_name, array[msg_id])) $$;

create function pgmq.archive(queue_name text, msg_ids bigint[]) returns setof bigint
language plpgsql
as $$
begin
  return query execute format(
    'with gone as (delete from pgmq.%I where msg_id = any ($1) returning msg_id, vt, read_ct, enqueued_at, message, headers)
     insert into pgmq.%I (msg_id, vt, read_ct, enqueued_at, message, headers) select * from gone returning msg_id',
    pgmq.format_table_name(queue_name, 'q'), pgmq.format_table_name(queue_name, 'a')) using msg_ids;
end $$;
create function pgmq.archive(queue_name text, msg_id bigint) returns boolean
language sql as $$ select exists (select from pgmq.archive(queue_name, array[msg_id])) $$;

create function pgmq.set_vt(queue_name text, msg_id bigint, vt integer) returns setof pgmq.message_record
language plpgsql
as $$
begin
  return query execute format(
    'update pgmq.%I set vt = clock_timestamp() + make_interval(secs => $2) where msg_id = $1
     returning msg_id, read_ct, enqueued_at, vt, message, headers', pgmq.format_table_name(queue_name, 'q'))
  using msg_id, vt;
end $$;

create function pgmq.purge_queue(queue_name text) returns bigint
language plpgsql
as $$
declare
  purged bigint;
begin
  execute format('delete from pgmq.%I', pgmq.format_table_name(queue_name, 'q'));
  get diagnostics purged = row_count;
  return purged;
end $$;

create function pgmq.list_queues() returns setof pgmq.queue_record
language sql as $$ select queue_name, is_partitioned, is_unlogged, created_at from pgmq.meta $$;

create function pgmq.metrics(queue_name text) returns pgmq.metrics_result
language plpgsql
as $$
declare
  result pgmq.metrics_result;
  queue constant text := pgmq.format_table_name(queue_name, 'q');
begin
  execute format(
    'select $1, count(*), extract(epoch from clock_timestamp() - max(enqueued_at))::integer,
            extract(epoch from clock_timestamp() - min(enqueued_at))::integer,
            coalesce((select last_value from pg_sequences where schemaname = ''pgmq'' and sequencename = %2$L), 0),
            clock_timestamp(), count(*) filter (where vt <= clock_timestamp())
     from pgmq.%1$I', queue, queue || '_msg_id_seq') into result using queue_name;
  return result;
end $$;
create function pgmq.metrics_all() returns setof pgmq.metrics_result
language sql as $$ select metrics.* from pgmq.meta, pgmq.metrics(meta.queue_name) as metrics $$;

-- Detaches an archive from the extension; here it never belongs to it.
create function pgmq.detach_archive(queue_name text) returns void language sql as $$ select null::void $$;

do $$
declare
  user_role text;
begin
  foreach user_role in array array['postgres', 'service_role'] loop
    continue when not exists (select from pg_catalog.pg_roles where rolname = user_role);
    execute pg_catalog.format('grant all on schema pgmq to %I with grant option', user_role);
    execute pg_catalog.format('grant all on all tables in schema pgmq to %I with grant option', user_role);
    execute pg_catalog.format('grant execute on all functions in schema pgmq to %I with grant option', user_role);
  end loop;
end $$;
select pg_catalog.pg_extension_config_dump('pgmq.meta', '');
