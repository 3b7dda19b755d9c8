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

create function private.guard_notification() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() then
    new := jsonb_populate_record(old, jsonb_build_object('read', new.read));
  end if;
  return new;
end $$;
create trigger guard before update on public.notifications for each row execute function private.guard_notification();

create function private.notify(p_user_id uuid, p_type text, p_title text, p_message text, p_link text default null,
  p_request_id text default null, p_donor_message_id text default null) returns void
language sql volatile security definer set search_path = '' as $$
  insert into public.notifications (user_id, type, title, message, link, request_id, donor_message_id)
  select p_user_id, p_type, left(p_title, 200), p_message, p_link, p_request_id, p_donor_message_id where p_user_id is not null
$$;

-- Tell the active members of an organization who work on requests (or only those with p_roles), except p_except.
create function private.notify_staff(p_nonprofit_id text, p_type text, p_title text, p_message text, p_link text,
  p_request_id text default null, p_roles text[] default array['admin', 'manager', 'employee'], p_except uuid default null) returns void
language sql volatile security definer set search_path = '' as $$
  insert into public.notifications (user_id, type, title, message, link, request_id)
  select u.id, p_type, left(p_title, 200), p_message, p_link, p_request_id
  from public.nonprofit_team_members m join auth.users u on u.id::text = m.user_id
  where m.nonprofit_id = p_nonprofit_id and m.is_active and m.user_id <> 'pending' and m.role = any (p_roles)
    and u.id is distinct from p_except
$$;

alter table public.notifications enable row level security;
create policy "owner reads notifications" on public.notifications for select to authenticated using (user_id = (select auth.uid()));
create policy "owner marks notifications" on public.notifications for update to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));
create policy "owner deletes notifications" on public.notifications for delete to authenticated using (user_id = (select auth.uid()));

-- Live updates where the realtime publication exists.
do $$
begin
  if exists (select 1 from pg_publication where pubname = 'supabase_realtime') then
    alter publication supabase_realtime add table public.notifications;
  end if;
exception when insufficient_privilege then
  raise notice 'supabase_realtime is not ours to change: notifications are polled';
end $$;
