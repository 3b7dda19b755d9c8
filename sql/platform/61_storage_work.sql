-- The storage server's additional tables: resumable uploads until they are complete, and buckets until they are empty.
select _supavisor.take_over('resumable_parts'), _supavisor.take_over('resumable_uploads');

create table if not exists _supavisor.resumable_uploads (
  -- Becomes the version of the object.
  id           uuid primary key,
  bucket_id    text not null,
  key          text not null,
  owner_id     text,
  -- Total bytes; null until a client with a deferred length has sent it.
  size         bigint,
  "offset"     bigint not null default 0,
  metadata     jsonb not null default '{}',
  created_at   timestamptz not null default now(),
  expires_at   timestamptz not null,
  finished_at  timestamptz,
  -- One request writes at a time: it holds a lease that it renews, and gives it up when another request asks.
  writer       uuid,
  writer_until timestamptz,
  writer_asked boolean not null default false
);
create index if not exists resumable_uploads_expiry on _supavisor.resumable_uploads (expires_at);

-- The pieces that arrived, one per request.
create table if not exists _supavisor.resumable_parts (
  upload uuid not null references _supavisor.resumable_uploads (id) on delete cascade,
  number integer not null,
  id     uuid not null,
  size   bigint not null,
  md5    bytea not null,
  primary key (upload, number)
);

-- Buckets that are being emptied of the objects created until then. A server that starts continues.
create table if not exists _supavisor.emptied_buckets (
  bucket_id text primary key,
  before    timestamptz not null
);
grant select, insert, update, delete on _supavisor.emptied_buckets to service_role;

grant select, insert, update, delete on _supavisor.resumable_uploads, _supavisor.resumable_parts to service_role;

-- Unfinished uploads in parts, of both protocols; `bytes` are the announced ones, or for S3 the received ones.
-- Without settings of its own, so that PostgreSQL plans the function's query as part of the caller's.
create or replace function ferrobase.unfinished_uploads() returns table (
  id text, bucket_id text, key text, owner_id text, bytes bigint, created_at timestamptz
)
language sql stable
as $$
  select u.id::pg_catalog.text, u.bucket_id, u.key, u.owner_id, greatest(u.size, u."offset"), u.created_at
  from _supavisor.resumable_uploads u where u.finished_at is null
  union all
  select u.id, u.bucket_id, u.key, u.owner_id, u.in_progress_size, u.created_at
  from storage.s3_multipart_uploads u
$$;
revoke execute on function ferrobase.unfinished_uploads() from public;
grant execute on function ferrobase.unfinished_uploads() to service_role;
create or replace view ferrobase.uploads_under_way with (security_invoker = true) as
  select u.id, u.bucket_id, u.key collate "C" as key, u.owner_id, u.bytes, u.created_at from ferrobase.unfinished_uploads() u;
create index if not exists resumable_uploads_owner on _supavisor.resumable_uploads (owner_id) where finished_at is null;
grant select on ferrobase.uploads_under_way to service_role;

-- Lets a project's triggers refuse another upload.
do $$
begin
  if current_user = 'supabase_admin' and exists (select from pg_catalog.pg_roles where rolname = 'postgres') then
    grant execute on function ferrobase.unfinished_uploads() to postgres;
    grant select on ferrobase.uploads_under_way to postgres;
    grant select, trigger on _supavisor.resumable_uploads to postgres;
  end if;
end $$;
