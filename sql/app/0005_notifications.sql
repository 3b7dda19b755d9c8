-- What a person is told inside the app. Rows are written by functions; the owner marks them read or deletes them.

create table public.notifications (
  id text primary key default gen_random_uuid()::text,
  user_id uuid not null references auth.users (id) on delete cascade,
  type text not null default 'info' constraint notifications_type check (type in ('info', 'warning', 'update', 'success')),
  title text not null constraint notifications_title check (length(title) <= 200),
  message text not null constraint notifications_message check (length(message) <= 12000),
  link text,
  request_id text references public.requests (id) on delete cascade,
  donor_message_id text,
  read boolean not null default false,
  date timestamptz not null default now()
);
create index notifications_owner on public.notifications (user_id, date desc);
create index notifications_unread on public.notifications (user_id) where not read;
create index notifications_request on public.notifications (request_id) where request_id is not null;
alter table public.notifications enable row level security;

-- Live updates where the realtime publication exists.
do $$
begin
  if exists (select 1 from pg_publication where pubname = 'supabase_realtime') then
    alter publication supabase_realtime add table public.notifications;
  end if;
exception when insufficient_privilege then
  raise notice 'supabase_realtime is not ours to change: notifications are polled';
end $$;
