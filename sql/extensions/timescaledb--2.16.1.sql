-- Hypertables and time buckets as in the Apache edition of TimescaleDB 2.16, which Supabase had for PostgreSQL 15. A hypertable gets what
-- `create_hypertable` demands of its table and the default index, but no partitions. Results of queries are the same.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

-- The superuser's, because a function of the superuser writes there, and the project may own the extension's schema.
create schema _timescaledb_catalog;
grant usage on schema _timescaledb_catalog to public;
create table _timescaledb_catalog._hypertables (
  id integer generated always as identity primary key,
  relation regclass not null unique,
  time_column name not null
);
select pg_extension_config_dump('_timescaledb_catalog._hypertables', '');
grant select on _timescaledb_catalog._hypertables to public;

-- Keeps the list, in which the caller may not write. Whoever owns the table may change it.
create function @extschema@._remember_hypertable(relation regclass, time_column name) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  owner constant oid := (select relowner from pg_class where oid = relation);
  new_id integer;
begin
  if not pg_has_role(session_user, owner, 'usage') then
    raise exception 'must be owner of hypertable "%"', relation using errcode = '42501';
  end if;
  -- Entries of tables that were dropped, whose numbers may come again.
  delete from _timescaledb_catalog._hypertables h
    where not exists (select from pg_attribute a where a.attrelid = h.relation and a.attname = h.time_column and not a.attisdropped);
  insert into _timescaledb_catalog._hypertables as h (relation, time_column) values (relation, time_column) returning h.id into new_id;
  return new_id;
end $$;

create function @extschema@.create_hypertable(
  relation regclass, time_column_name name, partitioning_column name default null, number_partitions integer default null,
  associated_schema_name name default null, associated_table_prefix name default null,
  chunk_time_interval anyelement default null::bigint, create_default_indexes boolean default true, if_not_exists boolean default false,
  partitioning_func regproc default null, migrate_data boolean default false, chunk_target_size text default null,
  chunk_sizing_func regproc default null, time_partitioning_func regproc default null)
returns table (hypertable_id integer, schema_name name, table_name name, created boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  class constant pg_class := (select c from pg_class c where c.oid = relation);
  known constant integer := (
    select h.id from _timescaledb_catalog._hypertables h
    join pg_attribute a on a.attrelid = h.relation and a.attname = h.time_column and not a.attisdropped
    where h.relation = create_hypertable.relation);
  kind text := (
    select coalesce(b.typname, t.typname) from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_type b on b.oid = t.typbasetype
    where a.attrelid = relation and a.attname = time_column_name and not a.attisdropped);
  space constant name := (select n.nspname from pg_namespace n where n.oid = class.relnamespace);
  index name;
  found_row boolean;
begin
  if known is not null then
    if not if_not_exists then
      raise exception 'table "%" is already a hypertable', class.relname using errcode = 'TS110';
    end if;
    raise notice 'table "%" is already a hypertable, skipping', class.relname;
    return query select known, space, class.relname, false;
    return;
  end if;
  if relation is null then
    raise exception 'relation cannot be NULL' using errcode = '22023';
  elsif class.relkind <> 'r' then
    raise exception '"%" is not a regular table', class.relname using errcode = '42809';
  elsif kind is null then
    raise exception 'column "%" does not exist', time_column_name using errcode = '42703';
  elsif kind not in ('timestamptz', 'timestamp', 'date', 'int2', 'int4', 'int8') and time_partitioning_func is null then
    raise exception 'invalid type for dimension "%"', time_column_name
      using errcode = '42804', hint = 'Use an integer, timestamp, or date type.';
  end if;
  execute format('select exists (select from %s)', relation) into found_row;
  if found_row and not migrate_data then
    raise exception 'table "%" is not empty', class.relname
      using errcode = '0A000', hint = 'You can migrate data by specifying ''migrate_data => true'' when calling this function.';
  end if;
  select i.indexrelid::regclass::text into index from pg_index i
    where i.indrelid = relation and i.indisunique
      and not exists (select from pg_attribute a where a.attrelid = relation and a.attname = time_column_name and a.attnum = any (i.indkey));
  if index is not null then
    raise exception 'cannot create a unique index without the column "%" (used in partitioning)', time_column_name
      using errcode = 'TS103',
            hint = 'If you''re creating a hypertable on a table with a primary key, ensure the partitioning column is part of the primary or composite key.';
  end if;
  execute format('alter table %s alter column %I set not null', relation, time_column_name);
  if create_default_indexes and not exists (
    select from pg_index i join pg_attribute a on a.attrelid = relation and a.attnum = i.indkey[0]
    where i.indrelid = relation and a.attname = time_column_name and i.indnkeyatts = 1
  ) then
    execute format('create index on %s (%I desc)', relation, time_column_name);
  end if;
  raise notice 'table "%" stays an ordinary table: partitions by time are not served here', class.relname;
  return query select @extschema@._remember_hypertable(relation, time_column_name), space, class.relname, true;
end $$;

-- Where the buckets of a width in months begin, counted from January 2000.
create function @extschema@._month_bucket(months integer, ts timestamp, origin timestamp) returns timestamp
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select origin + make_interval(months => months * floor(
    ((extract(year from ts) - extract(year from origin)) * 12 + extract(month from ts) - extract(month from origin)) / months::numeric)::integer)
$$;

create function @extschema@._bucket(bucket_width interval, ts timestamp, origin timestamp) returns timestamp
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  months constant integer := extract(year from bucket_width) * 12 + extract(month from bucket_width);
begin
  if bucket_width <= '0'::interval then
    raise exception 'period must be greater than 0' using errcode = '22023';
  end if;
  if months = 0 then
    return date_bin(bucket_width, ts, origin);
  elsif bucket_width <> make_interval(months => months) then
    raise exception 'interval must not have sub-day precision or mix months with days' using errcode = '22023';
  end if;
  return @extschema@._month_bucket(months, ts, date_trunc('month', origin));
end $$;

-- Buckets begin on Mondays, of months in January.
create function @extschema@._origin(bucket_width interval) returns timestamp
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case when extract(year from bucket_width) * 12 + extract(month from bucket_width) = 0
              then timestamp '2000-01-03' else timestamp '2000-01-01' end
$$;

do $$
declare
  kind text;
  -- A timestamptz is cut at UTC's hours and days.
  inwards text;
  outwards text;
begin
  for kind, inwards, outwards in
    values ('timestamp', '%s', '%s'), ('date', '%s::timestamp', '(%s)::date'),
           ('timestamptz', '(%s at time zone ''UTC'')', '(%s) at time zone ''UTC''')
  loop
    execute format(
      'create function @extschema@.time_bucket(bucket_width interval, ts %s) returns %1$s language sql immutable strict parallel safe
         return %s', kind, format(outwards, format('@extschema@._bucket(bucket_width, %s, @extschema@._origin(bucket_width))', format(inwards, 'ts'))));
    execute format(
      'create function @extschema@.time_bucket(bucket_width interval, ts %s, origin %1$s) returns %1$s language sql immutable strict parallel safe
         return %s', kind, format(outwards, format('@extschema@._bucket(bucket_width, %s, %s)', format(inwards, 'ts'), format(inwards, 'origin'))));
    execute format(
      'create function @extschema@.time_bucket(bucket_width interval, ts %s, "offset" interval) returns %1$s language sql immutable strict parallel safe
         return %s', kind,
      format(outwards, format('@extschema@._bucket(bucket_width, %s - "offset", @extschema@._origin(bucket_width)) + "offset"', format(inwards, 'ts'))));
  end loop;
  -- Numbers are cut downwards, also below 0.
  for kind in values ('smallint'), ('integer'), ('bigint') loop
    execute format(
      'create function @extschema@.time_bucket(bucket_width %s, ts %1$s) returns %1$s language sql immutable strict parallel safe
         return (floor(ts::numeric / bucket_width) * bucket_width)::%1$s', kind);
    execute format(
      'create function @extschema@.time_bucket(bucket_width %s, ts %1$s, "offset" %1$s) returns %1$s language sql immutable strict parallel safe
         return (floor((ts - "offset")::numeric / bucket_width) * bucket_width + "offset")::%1$s', kind);
  end loop;
end $$;

-- In the days of a time zone.
create function @extschema@.time_bucket(bucket_width interval, ts timestamptz, timezone text, origin timestamptz default null, "offset" interval default null)
returns timestamptz
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select (@extschema@._bucket(bucket_width, ts at time zone timezone - coalesce("offset", '0'),
                              coalesce(origin at time zone timezone, @extschema@._origin(bucket_width))) + coalesce("offset", '0')) at time zone timezone
$$;
