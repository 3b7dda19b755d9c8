-- Schema storage: buckets, objects and the functions that policies use. Shape: supabase/storage migrations/tenant up to
-- 0063, so that a dump of a hosted project restores here with its rows. The tables of Iceberg and vector buckets exist
-- only for such dumps and are not served.

set local role supabase_storage_admin;

do $$
begin
  if pg_catalog.to_regtype('storage.buckettype') is null then
    create type storage.buckettype as enum ('STANDARD', 'ANALYTICS', 'VECTOR');
  end if;
end $$;

create table if not exists storage.migrations (
  id          integer primary key,
  name        varchar(100) not null unique,
  hash        varchar(40) not null,
  executed_at timestamp default current_timestamp
);

create table if not exists storage.buckets (
  id                 text primary key,
  name               text not null,
  owner              uuid,
  created_at         timestamptz default now(),
  updated_at         timestamptz default now(),
  public             boolean default false,
  avif_autodetection boolean default false,
  file_size_limit    bigint,
  allowed_mime_types text[],
  owner_id           text,
  type               storage.buckettype not null default 'STANDARD',
  versioning_status  text not null default 'DISABLED'
);
-- Supabase uses a trigger for it, below, whose message clients see.
alter table storage.buckets drop constraint if exists buckets_name_length_check;
do $$
begin
  if not exists (select from pg_catalog.pg_constraint
      where conrelid = 'storage.buckets'::regclass and conname = 'buckets_versioning_status_check') then
    alter table storage.buckets
      add constraint buckets_versioning_status_check check (versioning_status in ('DISABLED', 'ENABLED', 'SUSPENDED')),
      add constraint buckets_versioning_standard_only_check check (type = 'STANDARD' or versioning_status = 'DISABLED'),
      -- Object versions are not kept yet, here as on Supabase.
      add constraint buckets_versioning_dark_check check (versioning_status = 'DISABLED');
  end if;
end $$;
create unique index if not exists bname on storage.buckets (name);
comment on column storage.buckets.owner is 'Field is deprecated, use owner_id instead';

create table if not exists storage.objects (
  id               uuid primary key default gen_random_uuid(),
  bucket_id        text,
  name             text,
  owner            uuid,
  created_at       timestamptz default now(),
  updated_at       timestamptz default now(),
  last_accessed_at timestamptz default now(),
  metadata         jsonb,
  path_tokens      text[] generated always as (string_to_array(name, '/')) stored,
  version          text,
  owner_id         text,
  user_metadata    jsonb,
  constraint "objects_bucketId_fkey" foreign key (bucket_id) references storage.buckets (id)
);
alter table storage.objects
  add column if not exists archived_at timestamptz,
  add column if not exists is_delete_marker boolean not null default false,
  add column if not exists is_versioned boolean not null default false;
create index if not exists name_prefix_search on storage.objects (name text_pattern_ops);
create index if not exists idx_objects_bucket_id_name on storage.objects (bucket_id, (name collate "C"));
create index if not exists idx_objects_bucket_id_name_lower on storage.objects (bucket_id, (lower(name) collate "C"));
-- Among indexes of equal cost the planner takes the newest, and while the table is small they all cost the same. Prepared statements
-- keep that plan until the table is analyzed; by the index above, a look-up then reads every object of its bucket.
do $$
begin
  if pg_catalog.pg_relation_size('storage.objects') < 10000000 and exists (
    select from pg_catalog.pg_index i where i.indrelid = 'storage.objects'::regclass
      and i.indexrelid > pg_catalog.to_regclass('storage.bucketid_objname')) then
    drop index storage.bucketid_objname;
  end if;
end $$;
create unique index if not exists bucketid_objname on storage.objects (bucket_id, name);
comment on column storage.objects.owner is 'Field is deprecated, use owner_id instead';

create table if not exists storage.s3_multipart_uploads (
  id               text primary key,
  in_progress_size bigint not null default 0,
  upload_signature text not null,
  bucket_id        text not null references storage.buckets (id),
  key              text collate "C" not null,
  version          text not null,
  owner_id         text,
  created_at       timestamptz not null default now(),
  user_metadata    jsonb,
  metadata         jsonb
);
create index if not exists idx_multipart_uploads_list
  on storage.s3_multipart_uploads (bucket_id, (key collate "C"), created_at);

create table if not exists storage.s3_multipart_uploads_parts (
  id          uuid primary key default gen_random_uuid(),
  upload_id   text not null references storage.s3_multipart_uploads (id) on delete cascade,
  size        bigint not null default 0,
  part_number integer not null,
  bucket_id   text not null references storage.buckets (id),
  key         text collate "C" not null,
  etag        text not null,
  owner_id    text,
  version     text not null,
  created_at  timestamptz not null default now()
);

create table if not exists storage.buckets_analytics (
  name       text not null,
  type       storage.buckettype not null default 'ANALYTICS',
  format     text not null default 'ICEBERG',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id         uuid primary key default gen_random_uuid(),
  deleted_at timestamptz
);
create unique index if not exists buckets_analytics_unique_name_idx
  on storage.buckets_analytics (name) where deleted_at is null;

create table if not exists storage.iceberg_namespaces (
  id          uuid primary key default gen_random_uuid(),
  bucket_name text not null,
  name        text collate "C" not null,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  metadata    jsonb not null default '{}',
  catalog_id  uuid not null references storage.buckets_analytics (id) on delete cascade
);
create unique index if not exists idx_iceberg_namespaces_bucket_id on storage.iceberg_namespaces (catalog_id, name);

create table if not exists storage.iceberg_tables (
  id              uuid primary key default gen_random_uuid(),
  namespace_id    uuid not null references storage.iceberg_namespaces (id) on delete cascade,
  bucket_name     text not null,
  name            text collate "C" not null,
  location        text not null,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  remote_table_id text,
  shard_key       text,
  shard_id        text,
  catalog_id      uuid not null references storage.buckets_analytics (id) on delete cascade
);
create unique index if not exists idx_iceberg_tables_namespace_id on storage.iceberg_tables (catalog_id, namespace_id, name);
create unique index if not exists idx_iceberg_tables_location on storage.iceberg_tables (location);

create table if not exists storage.buckets_vectors (
  id         text primary key,
  type       storage.buckettype not null default 'VECTOR',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create table if not exists storage.vector_indexes (
  id                     text primary key default gen_random_uuid(),
  name                   text collate "C" not null,
  bucket_id              text not null references storage.buckets_vectors (id),
  data_type              text not null,
  dimension              integer not null,
  distance_metric        text not null,
  metadata_configuration jsonb,
  created_at             timestamptz not null default now(),
  updated_at             timestamptz not null default now()
);
create unique index if not exists vector_indexes_name_bucket_id_idx on storage.vector_indexes (name, bucket_id);

alter table storage.migrations enable row level security;
alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;
alter table storage.s3_multipart_uploads enable row level security;
alter table storage.s3_multipart_uploads_parts enable row level security;
alter table storage.buckets_analytics enable row level security;
alter table storage.iceberg_namespaces enable row level security;
alter table storage.iceberg_tables enable row level security;
alter table storage.buckets_vectors enable row level security;
alter table storage.vector_indexes enable row level security;

grant all on storage.buckets, storage.objects, storage.buckets_analytics to anon, authenticated, service_role;
do $$
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant all on storage.buckets, storage.objects to postgres with grant option;
  end if;
end $$;
grant all on storage.s3_multipart_uploads, storage.s3_multipart_uploads_parts to service_role;
grant select on storage.s3_multipart_uploads, storage.s3_multipart_uploads_parts to anon, authenticated;
grant all on storage.iceberg_namespaces, storage.iceberg_tables to service_role;
grant select on storage.iceberg_namespaces, storage.iceberg_tables to anon, authenticated;
grant select on storage.buckets_vectors, storage.vector_indexes to anon, authenticated, service_role;

-- A file belongs to its row, so only the storage API may delete rows; it sets storage.allow_delete_query.
create or replace function storage.protect_delete() returns trigger
language plpgsql
as $$
begin
  if current_setting('storage.allow_delete_query', true) is distinct from 'true' then
    raise exception 'Direct deletion from storage tables is not allowed. Use the Storage API instead.'
      using errcode = '42501', hint = 'This prevents accidental data loss from orphaned objects.';
  end if;
  return null;
end $$;

create or replace trigger protect_buckets_delete before delete on storage.buckets
  for each statement execute function storage.protect_delete();
create or replace trigger protect_objects_delete before delete on storage.objects
  for each statement execute function storage.protect_delete();

create or replace function storage.update_updated_at_column() returns trigger
language plpgsql
as $$
begin
  new.updated_at := now();
  return new;
end $$;

create or replace trigger update_objects_updated_at before update on storage.objects
  for each row execute function storage.update_updated_at_column();

create or replace function storage.enforce_bucket_name_length() returns trigger
language plpgsql
as $$
begin
  if length(new.name) > 100 then
    raise exception 'bucket name "%" is too long (% characters). Max is 100.', new.name, length(new.name);
  end if;
  return new;
end $$;

create or replace trigger enforce_bucket_name_length_trigger before insert or update of name on storage.buckets
  for each row execute function storage.enforce_bucket_name_length();

-- All segments of a path but the last; empty for a file at the root.
create or replace function storage.foldername(name text) returns text[]
language sql immutable
as $$
  select (string_to_array(name, '/'))[1 : cardinality(string_to_array(name, '/')) - 1]
$$;

-- The last segment of a path.
create or replace function storage.filename(name text) returns text
language sql immutable
as $$
  select (string_to_array(name, '/'))[cardinality(string_to_array(name, '/'))]
$$;

-- What follows the last dot of the file name; a name without a dot is its own extension.
create or replace function storage.extension(name text) returns text
language sql immutable
as $$
  select reverse(split_part(reverse(storage.filename(name)), '.', 1))
$$;

-- The storage operation that the current transaction carries out, e.g. storage.object.upload.
create or replace function storage.operation() returns text
language sql stable
as $$
  select current_setting('storage.operation', true)
$$;

create or replace function storage.allow_any_operation(expected_operations text[]) returns boolean
language sql stable
as $$
  select coalesce(
    regexp_replace(storage.operation(), '^storage\.', '') = any (
      select regexp_replace(expected, '^storage\.', '')
      from unnest(expected_operations) as expected
      where expected <> ''
    ), false)
$$;

create or replace function storage.allow_only_operation(expected_operation text) returns boolean
language sql stable
as $$
  select storage.allow_any_operation(array[expected_operation])
$$;

-- Whether the caller may insert this object. Success raises PT200, so that the insert is rolled back.
create or replace function storage.can_insert_object(bucketid text, name text, owner uuid, metadata jsonb) returns void
language plpgsql
as $$
begin
  insert into storage.objects (bucket_id, name, owner, metadata) values (bucketid, name, owner, metadata);
  raise sqlstate 'PT200' using message = 'ROLLBACK', detail = 'rollback successful insert';
end $$;

create or replace function storage.get_size_by_bucket() returns table (size bigint, bucket_id text)
language sql stable
as $$
  select sum((o.metadata ->> 'size')::bigint)::bigint, o.bucket_id
  from storage.objects as o
  group by o.bucket_id
$$;

-- `p_key` up to and with the first delimiter after the prefix, or null when there is none.
create or replace function storage.get_common_prefix(p_key text, p_prefix text, p_delimiter text) returns text
language sql immutable
as $$
  select left(p_key, length(p_prefix) + nullif(strpos(substr(p_key, length(p_prefix) + 1), p_delimiter), 0)
                     + length(p_delimiter) - 1)
$$;

-- Listings read an index in name order and skip the content of folders: the next name searched is beyond
-- `folder || chr(1114111)`, the last possible character. Each runs with the caller's rights.

-- One level of a bucket below a prefix, in byte order: files, and folders (id null) without their last delimiter.
-- Names up to `start_after` (or `next_token`) are left out; one that ends with the delimiter leaves its whole folder out.
create or replace function storage.list_objects_with_delimiter(
  _bucket_id text,
  prefix_param text,
  delimiter_param text,
  max_keys integer default 100,
  start_after text default '',
  next_token text default '',
  sort_order text default 'asc'
) returns table (
  name text,
  id uuid,
  metadata jsonb,
  updated_at timestamptz,
  created_at timestamptz,
  last_accessed_at timestamptz
)
language plpgsql stable
as $$
declare
  wanted constant text := coalesce(prefix_param, '');
  beyond constant text := chr(1114111);
  ascending constant boolean := lower(coalesce(sort_order, 'asc')) <> 'desc';
  after constant text := coalesce(nullif(next_token, ''), nullif(start_after, ''));
  -- Names are searched from `low` up to, excluding, `high`.
  low text := wanted;
  high text := wanted || beyond;
  folder text;
  entry record;
  found_entries integer := 0;
begin
  if after is not null and ascending and after collate "C" >= wanted collate "C" then
    low := after || case when right(after, length(delimiter_param)) = delimiter_param then beyond else chr(1) end;
  elsif after is not null and not ascending and after collate "C" < high collate "C" then
    high := after;
  end if;
  while found_entries < max_keys loop
    folder := null;
    for entry in execute case when ascending then
        'select o.name, o.id, o.metadata, o.updated_at, o.created_at, o.last_accessed_at from storage.objects as o
         where o.bucket_id = $1 and o.name collate "C" >= $2 and o.name collate "C" < $3
         order by o.name collate "C" limit $4'
      else
        'select o.name, o.id, o.metadata, o.updated_at, o.created_at, o.last_accessed_at from storage.objects as o
         where o.bucket_id = $1 and o.name collate "C" >= $2 and o.name collate "C" < $3
         order by o.name collate "C" desc limit $4'
      end
      using _bucket_id, low, high, max_keys - found_entries
    loop
      folder := storage.get_common_prefix(entry.name, wanted, delimiter_param);
      found_entries := found_entries + 1;
      if folder is null then
        name := entry.name;
        id := entry.id;
        metadata := entry.metadata;
        updated_at := entry.updated_at;
        created_at := entry.created_at;
        last_accessed_at := entry.last_accessed_at;
        return next;
        continue;
      end if;
      name := left(folder, -length(delimiter_param));
      id := null;
      metadata := null;
      updated_at := null;
      created_at := null;
      last_accessed_at := null;
      return next;
      if ascending then low := folder || beyond; else high := folder; end if;
      exit;
    end loop;
    exit when folder is null;
  end loop;
end $$;

-- One level of a bucket below `prefix`, as the older list call shows it: names relative to the prefix, folders with nulls,
-- without regard to case; sorting by anything but the name puts folders first. `levels` is kept for older callers.
create or replace function storage.search(
  prefix text,
  bucketname text,
  limits integer default 100,
  levels integer default 1,
  offsets integer default 0,
  search text default '',
  sortcolumn text default 'name',
  sortorder text default 'asc'
) returns table (
  name text,
  id uuid,
  updated_at timestamptz,
  created_at timestamptz,
  last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
declare
  wanted constant text := lower(coalesce(prefix, '') || coalesce(search, ''));
  relative_from constant integer := length(coalesce(prefix, '')) + 1;
  most constant integer := least(coalesce(limits, 100), 1500);
  beyond constant text := chr(1114111);
  ascending constant boolean := lower(coalesce(sortorder, 'asc')) <> 'desc';
  -- Only names from this list reach the statement.
  sorted_by constant text := case lower(coalesce(sortcolumn, 'name'))
    when 'updated_at' then 'updated_at'
    when 'created_at' then 'created_at'
    when 'last_accessed_at' then 'last_accessed_at'
  end;
  low text := wanted;
  high text := wanted || beyond;
  folder text;
  entry record;
  to_skip integer := greatest(coalesce(offsets, 0), 0);
  found_entries integer := 0;
begin
  if sorted_by is not null then
    return query execute pg_catalog.format(
      $query$
        with matching as (
          select o.name, storage.get_common_prefix(lower(o.name), $2, '/') as folder,
                 o.id, o.updated_at, o.created_at, o.last_accessed_at, o.metadata
          from storage.objects as o
          where o.bucket_id = $1 and lower(o.name) collate "C" >= $2 and lower(o.name) collate "C" < $3
        ),
        entries as (
          select substr(m.name, $4) as name, m.id, m.updated_at, m.created_at, m.last_accessed_at, m.metadata, 1 as kind
          from matching as m where m.folder is null
          union all
          select substr(left(min(m.name), length(m.folder) - 1), $4), null, null, null, null, null, 0
          from matching as m where m.folder is not null group by m.folder
        )
        select e.name, e.id, e.updated_at, e.created_at, e.last_accessed_at, e.metadata
        from entries as e
        order by e.kind, e.%1$I %2$s, e.name %2$s
        limit $5 offset $6
      $query$, sorted_by, case when ascending then 'asc' else 'desc' end)
    using bucketname, low, high, relative_from, most, to_skip;
    return;
  end if;
  while found_entries < most loop
    folder := null;
    for entry in execute case when ascending then
        'select o.name, o.id, o.metadata, o.updated_at, o.created_at, o.last_accessed_at from storage.objects as o
         where o.bucket_id = $1 and lower(o.name) collate "C" >= $2 and lower(o.name) collate "C" < $3
         order by lower(o.name) collate "C" limit $4'
      else
        'select o.name, o.id, o.metadata, o.updated_at, o.created_at, o.last_accessed_at from storage.objects as o
         where o.bucket_id = $1 and lower(o.name) collate "C" >= $2 and lower(o.name) collate "C" < $3
         order by lower(o.name) collate "C" desc limit $4'
      end
      using bucketname, low, high, most - found_entries + to_skip
    loop
      folder := storage.get_common_prefix(lower(entry.name), wanted, '/');
      if to_skip > 0 then
        to_skip := to_skip - 1;
      else
        found_entries := found_entries + 1;
        if folder is null then
          name := substr(entry.name, relative_from);
          id := entry.id;
          updated_at := entry.updated_at;
          created_at := entry.created_at;
          last_accessed_at := entry.last_accessed_at;
          metadata := entry.metadata;
        else
          name := substr(left(entry.name, length(folder) - 1), relative_from);
          id := null;
          updated_at := null;
          created_at := null;
          last_accessed_at := null;
          metadata := null;
        end if;
        return next;
      end if;
      if folder is not null then
        if ascending then low := folder || beyond; else high := folder; end if;
        exit;
      end if;
    end loop;
    exit when folder is null;
  end loop;
end $$;

-- As list_objects_with_delimiter, sorted by a time; a folder has the time of its oldest object. Times count in milliseconds,
-- which is what a cursor holds. `p_start_after` names a folder with its slash.
create or replace function storage.search_by_timestamp(
  p_prefix text,
  p_bucket_id text,
  p_limit integer,
  p_level integer,
  p_start_after text,
  p_sort_order text,
  p_sort_column text,
  p_sort_column_after text
) returns table (
  key text,
  name text,
  id uuid,
  updated_at timestamptz,
  created_at timestamptz,
  last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
declare
  direction constant text := case when lower(p_sort_order) = 'desc' then 'desc' else 'asc' end;
begin
  return query execute pg_catalog.format(
    $query$
      with matching as (
        select o.*, storage.get_common_prefix(o.name, $1, '/') as folder
        from storage.objects as o
        where o.bucket_id = $2 and o.name collate "C" >= $1 and o.name collate "C" < $1 || chr(1114111)
      ),
      entries as (
        select m.name as place, m.id, m.updated_at, m.created_at, m.last_accessed_at, m.metadata
        from matching as m where m.folder is null
        union all
        select m.folder, null, min(m.created_at), min(m.created_at), null, null
        from matching as m where m.folder is not null group by m.folder
      ),
      placed as (
        select e.*, coalesce(date_trunc('milliseconds', e.%1$I), 'epoch') as at from entries as e
      )
      select split_part(p.place, '/', $3), case when p.id is null then left(p.place, -1) else p.place end, p.id, p.updated_at, p.created_at, p.last_accessed_at, p.metadata
      from placed as p
      where $5 = '' or (p.at, p.place collate "C") %2$s (coalesce(nullif($6, '')::timestamptz, 'epoch'), $5)
      order by p.at %3$s, p.place collate "C" %3$s
      limit $4
    $query$,
    case when lower(p_sort_column) = 'updated_at' then 'updated_at' else 'created_at' end,
    case direction when 'asc' then '>' else '<' end, direction)
  using coalesce(p_prefix, ''), p_bucket_id, p_level, p_limit, coalesce(p_start_after, ''), p_sort_column_after;
end $$;

-- One level of a bucket, as the newer list call shows it: full names, and `key`, the segment at `levels`.
create or replace function storage.search_v2(
  prefix text,
  bucket_name text,
  limits integer default 100,
  levels integer default 1,
  start_after text default '',
  sort_order text default 'asc',
  sort_column text default 'name',
  sort_column_after text default ''
) returns table (
  key text,
  name text,
  id uuid,
  updated_at timestamptz,
  created_at timestamptz,
  last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
declare
  most constant integer := least(coalesce(limits, 100), 1500);
begin
  if lower(coalesce(sort_column, 'name')) in ('created_at', 'updated_at') then
    return query select * from storage.search_by_timestamp(
      prefix, bucket_name, most, levels, start_after, sort_order, sort_column, sort_column_after);
  else
    return query
      select split_part(l.name, '/', levels), l.name, l.id, l.updated_at, l.created_at, l.last_accessed_at, l.metadata
      from storage.list_objects_with_delimiter(bucket_name, prefix, '/', most, start_after, '', sort_order) as l;
  end if;
end $$;

-- Multipart uploads in progress, by key; those below a delimiter once as their common prefix. Only an upload token
-- tells after which id to continue.
create or replace function storage.list_multipart_uploads_with_delimiter(
  bucket_id text,
  prefix_param text,
  delimiter_param text,
  max_keys integer default 100,
  next_key_token text default '',
  next_upload_token text default ''
) returns table (key text, id text, created_at timestamptz)
language sql stable
as $$
  select distinct on (place) place, u.id, u.created_at
  from (
    select coalesce(storage.get_common_prefix(m.key, $2, $3), m.key) collate "C" as place, m.id, m.created_at
    from storage.s3_multipart_uploads as m
    where m.bucket_id = $1 and starts_with(m.key, $2)
  ) as u
  where ($5 = '' or $6 <> '' or u.place > $5) and ($6 = '' or u.id collate "C" > $6)
  order by place, u.created_at
  limit $4
$$;

-- Default privileges as on Supabase; each table has row level security enabled.
alter default privileges in schema storage grant all on tables to anon, authenticated, service_role;
alter default privileges in schema storage grant all on routines to anon, authenticated, service_role;
alter default privileges in schema storage grant all on sequences to anon, authenticated, service_role;

reset role;
