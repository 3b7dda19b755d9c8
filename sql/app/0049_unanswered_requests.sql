-- Requests without an account that nobody answers do not stay for ever: the person and the organizations are told first.

create table private.unanswered_requests (
  request_id text primary key references public.requests (id) on delete cascade,
  told_at timestamptz not null default now(),
  ends_on date not null,
  kept_at timestamptz
);
comment on table private.unanswered_requests is 'Requests whose person was told that they are deleted on ends_on, unless something happens to them or the person opens them (kept_at).';
alter table private.unanswered_requests enable row level security;
create index requests_unanswered on public.requests (updated_at) where user_id is null and status in ('pending', 'processing');
