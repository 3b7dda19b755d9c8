-- Messages from an organization to its donors, what they answer, and who does not want mail any more. The newsletter.

create table public.donor_messages (
  id text primary key default gen_random_uuid()::text,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  subject text not null constraint donor_messages_subject check (length(btrim(subject)) between 2 and 200),
  message text not null constraint donor_messages_message check (length(btrim(message)) between 10 and 10000),
  send_key uuid constraint donor_messages_send_key_once unique,
  sent_by uuid,
  recipient_count int not null default 0,
  created_at timestamptz not null default now(),
  mailed_count int not null default 0
);
create index donor_messages_sent on public.donor_messages (nonprofit_id, created_at desc);
alter table public.notifications add constraint notifications_donor_message
  foreign key (donor_message_id) references public.donor_messages (id) on delete cascade;
create index notifications_donor_message on public.notifications (donor_message_id) where donor_message_id is not null;

create table public.donor_message_recipients (
  id text primary key default gen_random_uuid()::text,
  message_id text not null references public.donor_messages (id) on delete cascade,
  donor_user_id uuid references auth.users (id) on delete cascade,
  donor_email text not null,
  read_at timestamptz,
  created_at timestamptz not null default now(),
  mailed_at timestamptz
);
create unique index donor_message_recipients_once on public.donor_message_recipients (message_id, lower(donor_email));
create index donor_message_recipients_unclaimed on public.donor_message_recipients (lower(donor_email)) where donor_user_id is null;
create index donor_message_recipients_waiting on public.donor_message_recipients (message_id, id) where mailed_at is null;
create index donor_message_recipients_donor on public.donor_message_recipients (donor_user_id, created_at desc);

create table public.donor_message_replies (
  id text primary key default gen_random_uuid()::text,
  message_id text not null references public.donor_messages (id) on delete cascade,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  donor_user_id uuid references auth.users (id) on delete set null,
  from_name text not null constraint donor_message_replies_from check (length(from_name) <= 200),
  subject text not null constraint donor_message_replies_subject check (length(subject) <= 210),
  message text not null constraint donor_message_replies_message check (length(btrim(message)) between 1 and 10000),
  read_at timestamptz,
  created_at timestamptz not null default now(),
  reply_key uuid constraint donor_message_replies_key_once unique
);
create index donor_message_replies_inbox on public.donor_message_replies (nonprofit_id, created_at desc);
create index donor_message_replies_message on public.donor_message_replies (message_id);
create index donor_message_replies_donor on public.donor_message_replies (donor_user_id);

-- One row per address and list; the token in each mail ends it. List: 'newsletter' or a nonprofit's id.
create table private.subscriptions (
  id text primary key default gen_random_uuid()::text,
  list text not null,
  email text not null,
  token text not null unique default private.new_token(),
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,
  created_at timestamptz not null default now()
);
create unique index subscriptions_once on private.subscriptions (list, lower(email));
alter table private.subscriptions enable row level security;
alter table public.donor_messages enable row level security;
alter table public.donor_message_recipients enable row level security;
alter table public.donor_message_replies enable row level security;
