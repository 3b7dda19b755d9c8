-- Aid requests: the request, its part at each chosen nonprofit, its timeline and its documents.
-- Drafts are ordinary rows that their owner writes through the API; everything after submission goes through functions.

create extension if not exists pg_trgm with schema extensions;
create extension if not exists btree_gin with schema extensions;

create table public.denial_reasons (
  code text primary key,
  label text not null,
  position int not null
);
comment on table public.denial_reasons is 'The fixed list of reasons the public look-up may show.';

insert into public.denial_reasons (code, label, position) values
  ('funding_limit', 'Funding limit reached', 1),
  ('not_eligible', 'Outside what this program covers', 2),
  ('outside_area', 'Outside the area served', 3),
  ('missing_proof', 'Needed documents were not available', 4),
  ('duplicate', 'Already helped through another request', 5),
  ('no_capacity', 'No capacity at this time', 6),
  ('organization_closed', 'The organization closed', 7),
  ('other', 'Other reason', 8);

create sequence public.request_number_seq;

create table public.requests (
  id text primary key default gen_random_uuid()::text,
  request_number text constraint requests_number_once unique constraint requests_number_shape check (request_number ~ '^REQ-[0-9]{3,}$'),
  user_id uuid references auth.users (id) on delete set null,
  category text constraint requests_category_length check (length(category) <= 100),
  category_id text references public.categories (id) on delete set null,
  title text constraint requests_title_length check (length(title) <= 200),
  description text not null default '' constraint requests_description_length check (length(description) <= 5000),
  amount text not null default 'Not specified' constraint requests_amount_shape
    check (case when status = 'draft' then length(amount) <= 40 else amount = 'Not specified' or amount ~ '^\$[0-9]{1,7}(\.[0-9]{1,2})?$' end),
  amount_requested numeric(12, 2) constraint requests_amount_requested check (amount_requested >= 0),
  amount_approved numeric(12, 2) constraint requests_amount_approved check (amount_approved > 0),
  status text not null default 'draft' constraint requests_status
    check (status in ('draft', 'pending', 'processing', 'approved', 'declined', 'withdrawn')),
  nonprofits text[] not null default '{}' constraint requests_up_to_three_nonprofits
    check (cardinality(nonprofits) <= 3 and array_position(nonprofits, null) is null),
  needs_more_proof boolean not null default false,
  pending_notes text constraint requests_pending_notes_length check (length(pending_notes) <= 5000),
  denial_reason text constraint requests_denial_reason_length check (length(denial_reason) <= 5000),
  denial_reason_code text references public.denial_reasons (code),
  first_name text constraint requests_first_name_length check (length(first_name) <= 100),
  last_name text constraint requests_last_name_length check (length(last_name) <= 100),
  email text constraint requests_email_length check (length(email) <= 254),
  phone text constraint requests_phone_length check (length(phone) <= 40),
  address text constraint requests_address_length check (length(address) <= 300),
  city text constraint requests_city_length check (length(city) <= 100),
  state text constraint requests_state_length check (length(state) <= 100),
  postal_code text constraint requests_postal_code_length check (length(postal_code) <= 20),
  urgency text constraint requests_urgency check (urgency in ('low', 'medium', 'high')),
  preferred_contact text constraint requests_preferred_contact check (preferred_contact in ('email', 'phone')),
  contact_consent boolean not null default false,
  form text not null default 'wizard' constraint requests_form check (form in ('wizard', 'single')),
  step int not null default 1 constraint requests_step check (step between 1 and 5),
  submit_key uuid constraint requests_submit_key_once unique,
  claimed_by text references public.nonprofits (id) on delete set null,
  resubmitted_from text references public.requests (id) on delete set null,
  submitted_at timestamptz,
  review_started_at timestamptz,
  decided_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  amount_paid numeric(12, 2) not null default 0 constraint requests_amount_paid check (amount_paid >= 0),
  -- section 5 binds from submission on; a draft may be incomplete
  constraint requests_complete_when_sent check (status = 'draft' or (
    request_number is not null and submitted_at is not null and category is not null
    and cardinality(nonprofits) between 1 and 3 and length(btrim(description)) >= 10 and contact_consent
    and length(btrim(first_name)) >= 2 and length(btrim(last_name)) >= 2 and private.valid_email(email)
    and length(btrim(phone)) >= 5 and length(btrim(address)) >= 5 and length(btrim(city)) >= 2
    and length(btrim(state)) >= 2 and length(btrim(postal_code)) >= 2)),
  constraint requests_approved_has_amount check ((status = 'approved') = (amount_approved is not null) and (status <> 'approved' or decided_at is not null)),
  constraint requests_declined_has_reason check (status <> 'declined' or (denial_reason is not null and denial_reason_code is not null)),
  constraint requests_proof_only_while_pending check (not needs_more_proof or (status = 'pending' and pending_notes is not null)),
  constraint requests_processing_is_claimed check (status <> 'processing' or claimed_by is not null)
);
create index requests_owner on public.requests (user_id, updated_at desc);
create index requests_owner_sent on public.requests (user_id, submitted_at desc) where status <> 'draft';
create index requests_address on public.requests (lower(email));
create index requests_category on public.requests (category_id);
create index requests_resubmitted on public.requests (resubmitted_from) where resubmitted_from is not null;
create index requests_claimed on public.requests (claimed_by, status);
create index requests_grants on public.requests (claimed_by, (amount_approved - amount_paid) desc, id) where status = 'approved';
comment on column public.requests.amount is '''Not specified'' or ''$N''; from approval on the approved amount.';
comment on column public.requests.amount_paid is 'Sum of the payouts on this grant.';
comment on column public.requests.nonprofits is 'Chosen nonprofit ids; request_nonprofits says how each of them stands.';

create table public.request_nonprofits (
  request_id text not null references public.requests (id) on delete cascade,
  nonprofit_id text not null references public.nonprofits (id) on delete cascade,
  state text not null default 'open' constraint request_nonprofits_state
    check (state in ('open', 'claimed', 'taken', 'denied', 'withdrawn', 'closed')),
  submitted_at timestamptz not null default now(),
  opened_at timestamptz,
  opened_by uuid,
  acted_at timestamptz,
  acted_by uuid,
  reason text constraint request_nonprofits_reason_length check (length(reason) <= 5000),
  reason_code text references public.denial_reasons (code),
  -- The line in the organization's list, which incoming/ keeps: what it is cut, sorted and searched by.
  status text,
  needs_more_proof boolean not null default false,
  category text,
  amount_requested numeric(12, 2),
  search_text text not null default '',
  primary key (request_id, nonprofit_id)
);
create unique index request_nonprofits_one_claim on public.request_nonprofits (request_id) where state = 'claimed';
-- One index per sort; each leads with the status, so that a filter costs nothing and 'all' merges what its few statuses give.
create index request_nonprofits_by_date on public.request_nonprofits (nonprofit_id, status, submitted_at, request_id);
create index request_nonprofits_by_category on public.request_nonprofits (nonprofit_id, status, category, request_id);
create index request_nonprofits_by_amount on public.request_nonprofits (nonprofit_id, status, amount_requested, request_id);
create index request_nonprofits_search on public.request_nonprofits using gin (nonprofit_id extensions.text_ops, search_text extensions.gin_trgm_ops);
comment on column public.request_nonprofits.status is
  'How the request stands for this organization: pending, processing, approved, declined, withdrawn or taken; null when it is in no list (withdrawn before it was opened).';
comment on column public.request_nonprofits.search_text is
  'Number, category, amount and, where the organization may see it, the person''s name, in lower case after a space.';
comment on column public.request_nonprofits.state is
  'open: may act; claimed: acted first; taken: another claimed it; denied; withdrawn: by the requester; closed: the organization closed.';

create table public.request_events (
  id text primary key default gen_random_uuid()::text,
  request_id text not null references public.requests (id) on delete cascade,
  type text not null constraint request_events_type check (type in ('submitted', 'opened', 'info_requested', 'info_answered',
    'documents_added', 'first_approval', 'approved', 'denied', 'declined', 'released', 'withdrawn', 'claimed_by_account', 'paid', 'corrected')),
  actor text not null constraint request_events_actor check (actor in ('requester', 'nonprofit', 'system')),
  nonprofit_id text references public.nonprofits (id) on delete set null,
  actor_user_id uuid,
  note text constraint request_events_note_length check (length(note) <= 5000),
  amount numeric(12, 2),
  for_requester boolean not null default true,
  created_at timestamptz not null default clock_timestamp()
);
create index request_events_nonprofit on public.request_events (nonprofit_id) where nonprofit_id is not null;
create index request_events_request on public.request_events (request_id, created_at);

create table public.request_documents (
  id text primary key default gen_random_uuid()::text,
  request_id text not null references public.requests (id) on delete cascade,
  name text not null constraint request_documents_name check (length(btrim(name)) between 1 and 255),
  path text not null constraint request_documents_path check (length(path) between 3 and 400),
  mime_type text not null constraint request_documents_type check (mime_type in ('application/pdf', 'image/jpeg', 'image/png',
    'application/msword', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document')),
  size_bytes bigint not null constraint request_documents_size check (size_bytes between 1 and 10485760),
  kind text not null default 'submission' constraint request_documents_kind check (kind in ('submission', 'additional')),
  uploaded_by uuid,
  created_at timestamptz not null default now(),
  constraint request_documents_once unique (request_id, path)
);
create index request_documents_path_lookup on public.request_documents (path);
comment on column public.request_documents.path is 'Object name in bucket request-documents: <request id>/<file>; a guest''s begins with guest/.';

-- A place for one file of a request that a guest has not sent yet. The id is the secret that opens it.
create table private.guest_upload_slots (
  id uuid primary key default gen_random_uuid(),
  submit_key uuid not null,
  path text not null unique,
  name text not null,
  mime_type text not null,
  size_bytes bigint not null,
  address text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '2 hours',
  request_id text references public.requests (id) on delete set null
);
create index guest_upload_slots_key on private.guest_upload_slots (submit_key);
create index guest_upload_slots_age on private.guest_upload_slots (created_at) where request_id is null;
create index guest_upload_slots_request on private.guest_upload_slots (request_id) where request_id is not null;
alter table private.guest_upload_slots enable row level security;

-- A first approval that waits for the second. The owner of the request is not told its amount or its author.
create table private.first_approvals (
  request_id text primary key references public.requests (id) on delete cascade,
  amount numeric(12, 2) not null constraint first_approvals_amount check (amount > 0),
  approved_by uuid not null,
  approved_at timestamptz not null default now()
);
alter table private.first_approvals enable row level security;

-- Changes in the number of requests per organization, status, category and 'a decision is due'. Rows are only added, so that nobody waits
-- for a counter; the hourly sweep adds them up.
create table private.incoming_tally (
  nonprofit_id text not null,
  status text not null,
  category text,
  due boolean not null,
  change bigint not null
);
create index incoming_tally_organization on private.incoming_tally (nonprofit_id) include (status, category, due, change);
alter table private.incoming_tally enable row level security;

-- Codes that open a request for a person without an account.
create table private.request_codes (
  id uuid primary key default gen_random_uuid(),
  request_id text not null references public.requests (id) on delete cascade,
  asker text not null,
  code_hash text not null,
  tries int not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '15 minutes',
  used_at timestamptz
);
create index request_codes_request on private.request_codes (request_id, asker, created_at desc);
create index request_codes_age on private.request_codes (expires_at);

-- One device's way into one request. The secret is the device's; here is its hash.
create table private.request_access (
  token_hash text primary key,
  request_id text not null references public.requests (id) on delete cascade,
  upload_key uuid not null unique default gen_random_uuid(),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '24 hours'
);
create index request_access_request on private.request_access (request_id);
create index request_access_age on private.request_access (expires_at);
alter table private.request_codes enable row level security;
alter table private.request_access enable row level security;

alter table public.denial_reasons enable row level security;
alter table public.requests enable row level security;
alter table public.request_nonprofits enable row level security;
alter table public.request_events enable row level security;
alter table public.request_documents enable row level security;
