-- Money as records: what an organization sets aside, receives, grants and pays. No card data anywhere.
-- Every figure shown is a sum over these rows.

create table public.budget_allocations (
  id text primary key default gen_random_uuid()::text,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  category text not null constraint budget_allocations_category check (length(btrim(category)) between 1 and 100),
  amount numeric(12, 2) not null constraint budget_allocations_amount check (amount > 0),
  updated_by uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index budget_allocations_once on public.budget_allocations (nonprofit_id, lower(category));

create table public.donations (
  id text primary key default gen_random_uuid()::text,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  donor_user_id uuid references auth.users (id) on delete set null,
  donor_name text not null default '' constraint donations_donor_name check (length(donor_name) <= 200),
  donor_email text constraint donations_donor_email check (donor_email is null or private.valid_email(donor_email)),
  amount numeric(12, 2) not null constraint donations_amount check (amount > 0),
  status text not null default 'pledged' constraint donations_status check (status in ('pledged', 'received', 'cancelled')),
  pledge_key uuid constraint donations_pledge_key_once unique,
  note text constraint donations_note check (length(note) <= 1000),
  recorded_by uuid,
  pledged_at timestamptz not null default now(),
  received_at timestamptz,
  constraint donations_dates
    check (received_at >= timestamptz '1900-01-01' and pledged_at >= timestamptz '1900-01-01' and pledged_at < 'infinity'),
  constraint donations_received_has_date check ((status = 'received') = (received_at is not null))
);
create index donations_nonprofit on public.donations (nonprofit_id, status, pledged_at desc);
create index donations_donor on public.donations (donor_user_id, pledged_at desc);
create index donations_unclaimed on public.donations (lower(donor_email)) where donor_user_id is null;

create table public.budget_transactions (
  id text primary key default gen_random_uuid()::text,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  type text not null constraint budget_transactions_type check (type in ('Approval', 'Donation', 'Payout')),
  amount numeric(12, 2) not null constraint budget_transactions_amount check (amount > 0),
  category text,
  request_id text references public.requests (id) on delete set null,
  request_number text,
  donation_id text constraint budget_transactions_one_per_donation unique references public.donations (id) on delete set null,
  donor text,
  note text constraint budget_transactions_note check (length(note) <= 1000),
  created_by uuid,
  date timestamptz not null default now(),
  payout_key uuid constraint budget_transactions_payout_key_once unique
);
create index budget_transactions_recent on public.budget_transactions (nonprofit_id, date desc, id);
create index budget_transactions_request on public.budget_transactions (request_id) where request_id is not null;
create index budget_transactions_sums on public.budget_transactions (nonprofit_id, type, category) include (amount);
create unique index budget_transactions_one_approval on public.budget_transactions (request_id) where type = 'Approval';

-- Changes in the sums of an organization's ledger, kept like the counts of its requests (see 0036).
create table private.budget_tally (
  nonprofit_id text not null,
  type text not null,
  category text,
  change numeric not null
);
create index budget_tally_organization on private.budget_tally (nonprofit_id) include (type, category, change);
alter table private.budget_tally enable row level security;

alter table public.budget_allocations enable row level security;
alter table public.donations enable row level security;
alter table public.budget_transactions enable row level security;
