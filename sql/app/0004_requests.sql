-- Aid requests: the request, its part at each chosen nonprofit, its timeline and its documents.
-- Drafts are ordinary rows that their owner writes through the API; everything after submission goes through functions.

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
  first_approved_by uuid,
  first_approved_at timestamptz,
  resubmitted_from text references public.requests (id) on delete set null,
  submitted_at timestamptz,
  review_started_at timestamptz,
  decided_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- section 5 binds from submission on; a draft may be incomplete
  constraint requests_complete_when_sent check (status = 'draft' or (
    request_number is not null and submitted_at is not null and category is not null
    and cardinality(nonprofits) between 1 and 3 and length(btrim(description)) >= 10 and contact_consent
    and length(btrim(first_name)) >= 2 and length(btrim(last_name)) >= 2 and private.valid_email(email)
    and length(btrim(phone)) >= 5 and length(btrim(address)) >= 5 and length(btrim(city)) >= 2
    and length(btrim(state)) >= 2 and length(btrim(postal_code)) >= 2)),
  constraint requests_approved_has_amount check ((status = 'approved') = (amount_approved is not null and decided_at is not null and status = 'approved')),
  constraint requests_declined_has_reason check (status <> 'declined' or (denial_reason is not null and denial_reason_code is not null)),
  constraint requests_proof_only_while_pending check (not needs_more_proof or (status = 'pending' and pending_notes is not null)),
  constraint requests_processing_is_claimed check (status <> 'processing' or (claimed_by is not null and first_approved_by is not null))
);
create index requests_owner on public.requests (user_id, updated_at desc);
create index requests_owner_sent on public.requests (user_id, submitted_at desc) where status <> 'draft';
create index requests_address on public.requests (lower(email));
create index requests_category on public.requests (category_id);
create index requests_resubmitted on public.requests (resubmitted_from) where resubmitted_from is not null;
create index requests_claimed on public.requests (claimed_by, status);
comment on column public.requests.amount is '''Not specified'' or ''$N''; from approval on the approved amount.';
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
  primary key (request_id, nonprofit_id)
);
create unique index request_nonprofits_one_claim on public.request_nonprofits (request_id) where state = 'claimed';
create index request_nonprofits_list on public.request_nonprofits (nonprofit_id, submitted_at desc);
comment on column public.request_nonprofits.state is
  'open: may act; claimed: acted first; taken: another claimed it; denied; withdrawn: by the requester; closed: the organization closed.';

create table public.request_events (
  id text primary key default gen_random_uuid()::text,
  request_id text not null references public.requests (id) on delete cascade,
  type text not null constraint request_events_type check (type in ('submitted', 'opened', 'info_requested', 'info_answered',
    'documents_added', 'first_approval', 'approved', 'denied', 'declined', 'released', 'withdrawn', 'claimed_by_account', 'paid')),
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
alter table private.guest_upload_slots enable row level security;

-- ------------------------------------------------------------------------------------------------- who may see

-- True for an account that is staff (admin, manager, employee) of any organization.
create function private.is_staff_somewhere() returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from private.my_staff_organizations())
$$;

-- Staff see a request in full while their part is open or theirs, after they denied it (unless another took it), and after withdrawal if they had
-- opened it. A request that another nonprofit took stays a line in their list, without the person.
create function private.staff_may_see(p_request_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select 1 from public.request_nonprofits rn join public.requests r on r.id = rn.request_id
    where rn.request_id = p_request_id
      and rn.nonprofit_id in (select private.my_staff_organizations())
      and (rn.state in ('open', 'claimed')
        or (rn.state = 'denied' and (r.claimed_by is null or r.claimed_by = rn.nonprofit_id))
        or (rn.state = 'withdrawn' and rn.opened_at is not null)))
$$;

create function private.owns_request(p_request_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r where r.id = p_request_id and r.user_id = auth.uid())
$$;

-- Staff may see the photo and profile name of a person whose request they may see.
create function private.staff_may_see_person(p_user_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r
    where r.user_id::text = p_user_id and r.status <> 'draft' and private.staff_may_see(r.id))
$$;

-- ---------------------------------------------------------------------------------------------------- triggers

-- What a client may write into a draft, and which status follows which, for every caller.
create function private.guard_request() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() then
    if new.status <> 'draft' then
      perform private.fail(403, 'use_submit_request', 'A request is sent with submit_request.', jsonb_build_object('status', new.status));
    end if;
    if tg_op = 'INSERT' then
      new.user_id := coalesce(new.user_id, auth.uid()); new.created_at := now();
      new.id := private.client_id(new.id);  -- it names the folder of the request's files
      new.resubmitted_from := null;
    else
      new.id := old.id; new.user_id := old.user_id; new.created_at := old.created_at; new.resubmitted_from := old.resubmitted_from;
    end if;
    new.request_number := null; new.submit_key := null; new.submitted_at := null; new.review_started_at := null; new.decided_at := null; new.amount_approved := null;
    new.claimed_by := null; new.first_approved_by := null; new.first_approved_at := null; new.needs_more_proof := false;
    new.pending_notes := null; new.denial_reason := null; new.denial_reason_code := null;
  end if;
  if tg_op = 'UPDATE' and new.status <> old.status and (old.status, new.status) not in (
    ('draft', 'pending'), ('pending', 'processing'), ('pending', 'approved'), ('pending', 'declined'), ('pending', 'withdrawn'),
    ('processing', 'approved'), ('processing', 'declined'), ('processing', 'pending'), ('processing', 'withdrawn'))
  then
    perform private.fail(409, 'status_transition', 'This request has already been ' || old.status || '.',
      jsonb_build_object('from', old.status, 'to', new.status));
  end if;
  if cardinality(new.nonprofits) > 1 and cardinality(new.nonprofits) <> (select count(distinct x) from unnest(new.nonprofits) x) then
    new.nonprofits := array(select x from unnest(new.nonprofits) with ordinality as t (x, i) group by x order by min(i));
  end if;
  if cardinality(new.nonprofits) > 3 then
    perform private.fail(422, 'too_many_nonprofits', 'You can select up to 3 nonprofits for your request.',
      jsonb_build_object('fields', jsonb_build_object('nonprofits', 'You can select up to 3 nonprofits for your request.')));
  end if;
  if new.category_id is not null and (tg_op = 'INSERT' or new.category_id is distinct from old.category_id) then
    select c.name into new.category from public.categories c where c.id = new.category_id;
  end if;
  if new.amount is null then new.amount := 'Not specified'; end if;
  if new.status = 'draft' then new.amount_requested := private.amount_number(nullif(new.amount, 'Not specified')); end if;
  if tg_op = 'UPDATE' then new.updated_at := now(); end if;
  return new;
end $$;
create trigger guard before insert or update on public.requests for each row execute function private.guard_request();

-- Documents: up to 5 while a draft, up to 10 more while proof is asked for; the file must be there.
create function private.guard_document() returns trigger
language plpgsql set search_path = '' as $$
declare r public.requests; n int;
begin
  if not private.is_client() then return new; end if;
  select * into r from public.requests where id = new.request_id;  -- under the caller's policies
  if r.id is null or r.user_id is distinct from auth.uid() then
    perform private.fail(404, 'request_not_found', 'The requested aid request could not be found.');
  end if;
  new.uploaded_by := auth.uid(); new.created_at := now();
  if r.status = 'draft' then new.kind := 'submission';
  elsif r.status = 'pending' and r.needs_more_proof then new.kind := 'additional';
  else
    perform private.fail(409, 'documents_not_wanted', 'This request does not take documents now.', jsonb_build_object('status', r.status));
  end if;
  perform private.lock_request(new.request_id);
  select count(*) into n from public.request_documents d where d.request_id = new.request_id and d.kind = new.kind;
  if n >= (case new.kind when 'submission' then 5 else 10 end) then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of ' || case new.kind when 'submission' then 5 else 10 end || ' files.',
      jsonb_build_object('max', case new.kind when 'submission' then 5 else 10 end));
  end if;
  if split_part(new.path, '/', 1) <> new.request_id then
    perform private.fail(422, 'document_path', 'The file is not in this request''s folder.');
  end if;
  if not private.document_object_exists(new.path) then
    perform private.fail(422, 'document_missing', 'The file did not arrive. Please upload it again.', jsonb_build_object('name', new.name));
  end if;
  return new;
end $$;
create trigger guard before insert on public.request_documents for each row execute function private.guard_document();

create function private.document_object_exists(p_path text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from storage.objects o where o.bucket_id = 'request-documents' and o.name = p_path)
$$;
-- Serialises what counts against a request's limits; only for callers who own it.
create function private.lock_request(p_request_id text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform 1 from public.requests where id = p_request_id and user_id = auth.uid() for update;
end $$;

-- Drafts go with their account; what was sent stays, without it.
create function private.on_account_deleted_drafts() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  delete from public.requests where user_id = old.id and status = 'draft';
  return old;
end $$;
create trigger aidbridge_account_deleted_drafts before delete on auth.users
  for each row execute function private.on_account_deleted_drafts();

-- ------------------------------------------------------------------------------------------ names of the product

-- The client's names for three fields of a request, selectable beside the columns.
create function public."needsMoreProof"(r public.requests) returns boolean
language sql stable set search_path = '' as $$ select r.needs_more_proof $$;
create function public."pendingNotes"(r public.requests) returns text
language sql stable set search_path = '' as $$ select r.pending_notes $$;
create function public."denialReason"(r public.requests) returns text
language sql stable set search_path = '' as $$ select r.denial_reason $$;
-- Documents of a request as the caller may see them: [{id, name, path, mime_type, size_bytes, kind, created_at}].
create function public.documents(r public.requests) returns jsonb
language sql stable set search_path = '' as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'path', d.path, 'mime_type', d.mime_type,
    'size_bytes', d.size_bytes, 'kind', d.kind, 'created_at', d.created_at) order by d.created_at, d.id), '[]'::jsonb)
  from public.request_documents d where d.request_id = r.id
$$;

-- ---------------------------------------------------------------------------------------------------- policies

alter table public.denial_reasons enable row level security;
alter table public.requests enable row level security;
alter table public.request_nonprofits enable row level security;
alter table public.request_events enable row level security;
alter table public.request_documents enable row level security;

create policy "everyone reads the list of reasons" on public.denial_reasons for select to anon, authenticated using (true);

create policy "owner reads requests" on public.requests for select to authenticated using (user_id = (select auth.uid()));
create policy "staff read requests sent to them" on public.requests for select to authenticated
  using (status <> 'draft' and (select private.is_staff_somewhere()) and private.staff_may_see(id));
create policy "owner keeps drafts" on public.requests for insert to authenticated
  with check (user_id = (select auth.uid()) and status = 'draft');
create policy "owner changes drafts" on public.requests for update to authenticated
  using (user_id = (select auth.uid()) and status = 'draft') with check (user_id = (select auth.uid()) and status = 'draft');
create policy "owner deletes drafts" on public.requests for delete to authenticated
  using (user_id = (select auth.uid()) and status = 'draft');

create policy "owner reads the parts" on public.request_nonprofits for select to authenticated
  using (private.owns_request(request_id));
create policy "staff read their part" on public.request_nonprofits for select to authenticated
  using (nonprofit_id in (select private.my_staff_organizations()));

create policy "owner reads the timeline" on public.request_events for select to authenticated
  using (for_requester and private.owns_request(request_id));
create policy "staff read the timeline" on public.request_events for select to authenticated
  using ((select private.is_staff_somewhere()) and private.staff_may_see(request_id)
    -- what another organization wrote to the person goes to the person alone
    and ((for_requester and (actor <> 'nonprofit' or note is null)) or nonprofit_id in (select private.my_staff_organizations())));

create policy "owner reads documents" on public.request_documents for select to authenticated
  using (private.owns_request(request_id));
create policy "staff read documents" on public.request_documents for select to authenticated
  using ((select private.is_staff_somewhere()) and private.staff_may_see(request_id));
create policy "owner adds documents" on public.request_documents for insert to authenticated
  with check (private.owns_request(request_id));
create policy "owner removes documents of a draft" on public.request_documents for delete to authenticated
  using (exists (select 1 from public.requests r where r.id = request_id and r.user_id = (select auth.uid()) and r.status = 'draft'));
