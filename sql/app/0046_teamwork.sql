-- Staff among themselves: who of them looks after a request, and answers that are written once.

alter table public.request_nonprofits add column assigned_to text references public.nonprofit_team_members (id) on delete set null;
create index request_nonprofits_assigned on public.request_nonprofits (assigned_to) where assigned_to is not null;
comment on column public.request_nonprofits.assigned_to is 'The member of this organization''s team who looks after it. Null: nobody in particular.';

create table public.saved_replies (
  id text primary key default gen_random_uuid()::text,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  kind text not null constraint saved_replies_kind check (kind in ('info', 'denial')),
  title text not null constraint saved_replies_title check (length(title) between 1 and 80),
  body text not null constraint saved_replies_body check (length(body) between 1 and 5000),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint saved_replies_once unique (nonprofit_id, kind, title)
);
comment on column public.saved_replies.kind is 'Where it is offered: info when something is missing, denial when a request is declined.';
alter table public.saved_replies enable row level security;

-- The page of requests can be cut to one's own: the function takes one more argument.
drop function if exists public.incoming_page(text, text, text, text, boolean, int, int);
