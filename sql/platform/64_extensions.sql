-- Extensions of ours whose objects exist without the extension: on a server of somebody else (`DATABASE_URL`) that has neither them
-- nor pg_tle. Its jobs and queued requests are served as if the extension were there.
select _supavisor.take_over('extensions');
create table if not exists _supavisor.extensions (
  name       text primary key,
  version    text not null,
  schema     text not null,
  created_at timestamptz not null default now()
);
-- What was created, as `type identity`, the last first; null where an earlier version did not record it.
alter table _supavisor.extensions add column if not exists objects text[];
grant select on _supavisor.extensions to supabase_ferrobase_admin;
