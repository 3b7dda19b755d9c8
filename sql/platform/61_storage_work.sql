-- What the storage server keeps beside Supabase's own tables: resumable uploads until their last byte arrives.

create table if not exists ferrobase.resumable_uploads (
  -- Becomes the version of the object.
  id           uuid primary key,
  bucket_id    text not null,
  key          text not null,
  owner_id     text,
  -- Bytes in all; null until a client that deferred it has said.
  size         bigint,
  "offset"     bigint not null default 0,
  metadata     jsonb not null default '{}',
  created_at   timestamptz not null default now(),
  expires_at   timestamptz not null,
  finished_at  timestamptz,
  -- One request writes at a time: it holds a lease that it renews, and lets go when another one asks.
  writer       uuid,
  writer_until timestamptz,
  writer_asked boolean not null default false
);
create index if not exists resumable_uploads_expiry on ferrobase.resumable_uploads (expires_at);

-- The pieces that arrived, one per request.
create table if not exists ferrobase.resumable_parts (
  upload uuid not null references ferrobase.resumable_uploads (id) on delete cascade,
  number integer not null,
  id     uuid not null,
  size   bigint not null,
  md5    bytea not null,
  primary key (upload, number)
);

alter table ferrobase.resumable_uploads enable row level security;
alter table ferrobase.resumable_parts enable row level security;
grant select, insert, update, delete on ferrobase.resumable_uploads, ferrobase.resumable_parts to service_role;
do $$
begin
  create policy server on ferrobase.resumable_uploads to service_role using (true) with check (true);
  create policy server on ferrobase.resumable_parts to service_role using (true) with check (true);
exception when duplicate_object then
  null;
end $$;
