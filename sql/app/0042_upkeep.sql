-- What nobody needs any more goes by itself, and the hourly round finds it by an index.

create index requests_without_account on public.requests (status, decided_at) where user_id is null;
create index requests_old_drafts on public.requests (updated_at) where status = 'draft';
create index notifications_old on public.notifications (date) where read;
insert into ferrobase.hourly (function) values ('private.retain') on conflict do nothing;
