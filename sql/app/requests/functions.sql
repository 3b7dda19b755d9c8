-- Aid requests from the requester's side: drafts, sending, the public look-up, the request's page, a guest's access.

-- --------------------------------------------------------------------------------------------------------- who may see

create or replace function private.owns_request(p_request_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r where r.id = p_request_id and r.user_id = auth.uid())
$$;

-- Staff see a request in full while their part is open or theirs, after they denied it (unless another took it), and
-- after withdrawal if they had opened it. A request taken by another nonprofit stays in their list as a line without
-- the person.
create or replace function private.staff_may_see(p_request_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select 1 from public.request_nonprofits rn join public.requests r on r.id = rn.request_id
    where rn.request_id = p_request_id
      and rn.nonprofit_id in (select private.my_staff_organizations())
      and (rn.state in ('open', 'claimed')
        or (rn.state = 'denied' and (r.claimed_by is null or r.claimed_by = rn.nonprofit_id))
        or (rn.state = 'withdrawn' and rn.opened_at is not null)))
$$;

-- Staff may see the photo and profile name of a person whose request they may see.
create or replace function private.staff_may_see_person(p_user_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r
    where r.user_id = private.account_id(p_user_id) and r.status <> 'draft' and private.staff_may_see(r.id))
$$;

-- -------------------------------------------------------------------------------------------------------------- guards

-- What a client may write into a draft, and which status follows which, for every caller.
create or replace function private.guard_request() returns trigger
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
      -- an existing row is updated by an upsert, or refused as a duplicate
      if new.user_id = auth.uid() and not exists (select 1 from public.requests x where x.id = new.id) then
        perform private.hold_draft_place(new.user_id);
      end if;
    else
      new.id := old.id; new.user_id := old.user_id; new.created_at := old.created_at; new.resubmitted_from := old.resubmitted_from;
    end if;
    new.request_number := null; new.submit_key := null; new.submitted_at := null; new.review_started_at := null; new.decided_at := null; new.amount_approved := null; new.amount_paid := 0;
    new.claimed_by := null; new.needs_more_proof := false; new.pending_notes := null; new.denial_reason := null; new.denial_reason_code := null;
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
  -- while a draft, the category's name follows its id: staff, mail and budget are told the name alone
  if new.category_id is not null and (new.status = 'draft' or tg_op = 'INSERT' or new.category_id is distinct from old.category_id) then
    select c.name into new.category from public.categories c where c.id = new.category_id;
  end if;
  if new.amount is null then new.amount := 'Not specified'; end if;
  if new.status = 'draft' then new.amount_requested := private.amount_number(nullif(new.amount, 'Not specified')); end if;
  if tg_op = 'UPDATE' then new.updated_at := now(); end if;
  return new;
end $$;

-- Serialises operations that count against a request's limits; only for its owner.
create or replace function private.lock_request(p_request_id text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform 1 from public.requests where id = p_request_id and user_id = auth.uid() for update;
end $$;

-- Keeps each chosen organization open until the request is stored; closing waits for that, or comes first.
create or replace function private.hold_organization() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform 1 from public.nonprofits n where n.id = new.nonprofit_id and n.status = 'active' for share;
  if not found then
    perform private.fail(422, 'validation_failed', 'Please check the marked fields.',
      '{"fields": {"nonprofits": "One of the chosen nonprofits is no longer available. Please choose another."}}');
  end if;
  return new;
end $$;

-- --------------------------------------------------------------------------- computed fields: the names of the product

-- The client's names for three fields of a request, selectable beside the columns.
create or replace function public."needsMoreProof"(r public.requests) returns boolean
language sql stable set search_path = '' as $$ select r.needs_more_proof $$;

create or replace function public."pendingNotes"(r public.requests) returns text
language sql stable set search_path = '' as $$ select r.pending_notes $$;

create or replace function public."denialReason"(r public.requests) returns text
language sql stable set search_path = '' as $$ select r.denial_reason $$;

-- Documents of a request as the caller may see them: [{id, name, path, mime_type, size_bytes, kind, created_at}].
create or replace function public.documents(r public.requests) returns jsonb
language sql stable set search_path = '' as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'path', d.path, 'mime_type', d.mime_type,
    'size_bytes', d.size_bytes, 'kind', d.kind, 'created_at', d.created_at) order by d.created_at, d.id), '[]'::jsonb)
  from public.request_documents d where d.request_id = r.id
$$;

-- --------------------------------------------------------------------------------------------------------- finding one

-- 'req 7', 'REQ7', '#7' and '7' mean 'REQ-007': copied by hand, or corrected by a keyboard. The page does the same (lib/request-number).
create or replace function private.number_of(p text) returns text
language sql immutable set search_path = '' as $$
  select case when d is null then c else 'REQ-' || lpad(d, greatest(3, length(d)), '0') end
  from (select upper(regexp_replace(coalesce(p, ''), '\s', '', 'g'))) x (c), substring(c from '^(?:REQ)?[-#.:_‐‑‒–—−]?0*([0-9]+)$') d
$$;

-- The request with this id or number, whichever was given.
create or replace function private.request_id_of(p text) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce(
    (select r.id from public.requests r where r.id = private.clean(p)),
    (select r.id from public.requests r where r.request_number = private.number_of(p)))
$$;

create or replace function private.fail_request_not_found() returns void
language plpgsql set search_path = '' as $$
begin
  perform private.fail(404, 'request_not_found', 'The requested aid request could not be found.');
end $$;

-- 409 with the current state. p_nonprofit_id: the calling organization, null for the person.
create or replace function private.fail_decided(r public.requests, p_nonprofit_id text) returns void
language plpgsql stable security definer set search_path = '' as $$
declare other boolean := r.claimed_by is not null and p_nonprofit_id is not null and r.claimed_by <> p_nonprofit_id;
  seen text;
begin
  select case p.state when 'denied' then 'declined' when 'taken' then 'taken' else r.status end into seen
  from public.request_nonprofits p where p.request_id = r.id and p.nonprofit_id = p_nonprofit_id;
  seen := coalesce(seen, r.status);
  perform private.fail(409, 'request_already_decided',
    case when seen = 'taken' then 'Another nonprofit has taken this request.'
         when seen = 'pending' then 'This request has already been submitted.'
         else 'This request has already been ' || seen || '.' end,
    jsonb_build_object('status', seen, 'claimed_by_other', other,
      'claimed_by', (select n.name from public.nonprofits n where n.id = r.claimed_by),
      'needs_more_proof', r.needs_more_proof, 'decided_at', r.decided_at));
end $$;

-- Where a guest's mails and texts lead: to where the code is asked for, in the language of the mail, because the phone at hand may speak
-- another one. An account's pages know its language.
create or replace function private.guest_link(r public.requests) returns text
language sql stable security definer set search_path = '' as $$
  select private.site_link('/open-request?number=' || r.request_number || case when private.language_of(r) <> 'en' then '&lang=' || private.language_of(r) else '' end)
$$;

create or replace function private.request_link(r public.requests) returns text
language sql stable security definer set search_path = '' as $$
  select case when r.user_id is not null then private.site_link('/request/' || r.id) else private.guest_link(r) end
$$;

create or replace function private.documents_of(p_request_id text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'path', d.path, 'mime_type', d.mime_type,
    'size_bytes', d.size_bytes, 'kind', d.kind, 'created_at', d.created_at) order by d.created_at, d.id), '[]'::jsonb)
  from public.request_documents d where d.request_id = p_request_id
$$;

-- -------------------------------------------------------------------------------------------------------------- drafts

-- r with the contact and answer fields of p_input applied. Only keys in p_input change.
create or replace function private.apply_answers(r public.requests, p_input jsonb) returns public.requests
language plpgsql stable set search_path = '' as $$
declare i jsonb := coalesce(p_input, '{}'::jsonb);
begin
  if i ? 'category_id' then
    r.category_id := private.clean(i ->> 'category_id');
    if r.category_id is not null and not exists (select 1 from public.categories c where c.id = r.category_id) then r.category_id := null; end if;
    if r.category_id is null then r.category := null; end if;
  end if;
  if jsonb_typeof(i -> 'nonprofits') = 'array' then
    r.nonprofits := array(select x from jsonb_array_elements_text(i -> 'nonprofits') with ordinality t (x, n)
                          where private.clean(x) is not null group by x order by min(n));
  end if;
  if i ? 'title' then r.title := left(private.clean(i ->> 'title'), 200); end if;
  if i ? 'description' then r.description := coalesce(i ->> 'description', ''); end if;
  if i ? 'amount' then r.amount := coalesce(private.clean(i ->> 'amount'), 'Not specified'); end if;
  if i ? 'urgency' then r.urgency := private.clean(i ->> 'urgency'); end if;
  if i ? 'preferred_contact' then r.preferred_contact := private.clean(i ->> 'preferred_contact'); end if;
  if i ? 'contact_consent' then r.contact_consent := coalesce(i -> 'contact_consent' = 'true'::jsonb, false); end if;
  if i ->> 'form' in ('wizard', 'single') then r.form := i ->> 'form'; end if;
  if i ->> 'step' ~ '^[1-5]$' then r.step := (i ->> 'step')::int; end if;
  if i ? 'first_name' then r.first_name := private.clean(i ->> 'first_name'); end if;
  if i ? 'last_name' then r.last_name := private.clean(i ->> 'last_name'); end if;
  if i ? 'email' then r.email := private.clean(i ->> 'email'); end if;
  if i ? 'sms_consent' then r.sms_consent := coalesce(i -> 'sms_consent' = 'true'::jsonb, false);
  -- the consent was for the number shown beside it
  elsif i ? 'phone' and private.clean(i ->> 'phone') is distinct from r.phone then r.sms_consent := false; end if;
  if i ? 'phone' then r.phone := private.clean(i ->> 'phone'); end if;
  if i ? 'address' then r.address := private.clean(i ->> 'address'); end if;
  if i ? 'city' then r.city := private.clean(i ->> 'city'); end if;
  if i ? 'state' then r.state := private.clean(i ->> 'state'); end if;
  if i ? 'postal_code' then r.postal_code := private.clean(i ->> 'postal_code'); end if;
  return r;
end $$;

create or replace function private.write_answers(r public.requests) returns void
language sql volatile security definer set search_path = '' as $$
  update public.requests x set
    category_id = r.category_id, category = r.category, nonprofits = r.nonprofits, title = r.title, description = r.description,
    amount = r.amount, urgency = r.urgency, preferred_contact = r.preferred_contact, contact_consent = r.contact_consent,
    form = r.form, step = r.step, first_name = r.first_name, last_name = r.last_name, email = r.email, phone = r.phone, sms_consent = r.sms_consent,
    address = r.address, city = r.city, state = r.state, postal_code = r.postal_code
  where x.id = r.id
$$;

-- The caller's draft, locked; or 404, or 409 if it was sent meanwhile.
create or replace function private.require_draft(p_id text) returns public.requests
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests;
begin
  select * into r from public.requests x where x.id = p_id and x.user_id = auth.uid() for update;
  if not found then perform private.fail_request_not_found(); end if;
  if r.status <> 'draft' then perform private.fail_decided(r, null); end if;
  return r;
end $$;

-- Fails if the draft has changed since the page last read or saved it: p_seen is the `updated_at` it knows, null if it does
-- not say. p_new: the draft with what is to be saved; the same answers once more are no conflict.
create or replace function private.require_seen(r public.requests, p_new public.requests, p_seen text) returns void
language plpgsql stable set search_path = '' as $$
declare progress constant text[] := array['form', 'step', 'category'];
begin
  if r.updated_at is distinct from p_seen::timestamptz and p_seen is not null and to_jsonb(r) - progress <> to_jsonb(p_new) - progress then
    perform private.fail(409, 'draft_changed', 'This draft was changed on another device meanwhile. Nothing was saved. Choose which version you want to keep.',
      jsonb_build_object('updated_at', r.updated_at));
  end if;
end $$;

-- The id of a person's draft for a client's key; null if the key is invalid.
create or replace function private.named_draft(p_user uuid, p_key text) returns text
language sql immutable set search_path = '' as $$
  select md5('draft:' || p_user || ':' || p_key)::uuid::text where p_key ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
$$;

-- Fails if the person has too many drafts. Concurrent calls wait until the transaction ends.
create or replace function private.hold_draft_place(p_user uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare most constant int := 50;
begin
  perform pg_advisory_xact_lock(hashtextextended('drafts of ' || p_user, 0));
  if (select count(*) from public.requests x where x.user_id = p_user and x.status = 'draft') >= most then
    perform private.fail(409, 'too_many_drafts', 'You have ' || most || ' saved drafts. Please delete one first.', jsonb_build_object('max', most));
  end if;
end $$;

-- A first save without an id creates the draft of its key: the same person and key give the same draft. `seen`: the
-- `updated_at` that the page knows; if the draft was changed elsewhere since, nothing is saved.
create or replace function public.save_draft(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := private.require_user(); r public.requests; changed public.requests;
  draft text := private.clean(input ->> 'id');
  named boolean := false;
begin
  if draft is null then
    draft := private.named_draft(uid, input ->> 'key');
    if draft is not null then
      perform pg_advisory_xact_lock(hashtextextended('draft:' || draft, 0));
      named := not exists (select 1 from public.requests x where x.id = draft);
      -- the request was sent before this save arrived
      select * into r from public.requests x where x.submit_key = (input ->> 'key')::uuid and x.user_id = uid and x.status <> 'draft';
      if found then perform private.fail_decided(r, null); end if;
    end if;
  end if;
  if draft is not null and not named then
    r := private.require_draft(draft);
  else
    perform private.hold_draft_place(uid);
    insert into public.requests (id, user_id) values (coalesce(draft, gen_random_uuid()::text), uid) returning * into r;
  end if;
  changed := private.apply_answers(r, input);
  if draft is not null and not named then perform private.require_seen(r, changed, input ->> 'seen'); end if;
  perform private.write_answers(changed);
  return (select jsonb_build_object('id', x.id, 'updated_at', x.updated_at) from public.requests x where x.id = r.id);
end $$;

-- ------------------------------------------------------------------------------------------------------------- sending

-- Checks a request against section 5 before it is sent: {field: message}, {} if valid.
create or replace function private.submission_errors(r public.requests) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare e jsonb := '{}';
begin
  if r.category_id is null or not exists (select 1 from public.categories c where c.id = r.category_id and c.is_active
    and (c.nonprofit_id is null or c.nonprofit_id = any (r.nonprofits))) then
    e := e || '{"category_id": "Please select a category"}'; end if;
  if cardinality(r.nonprofits) = 0 then e := e || '{"nonprofits": "Please select at least one nonprofit"}';
  elsif cardinality(r.nonprofits) > 3 then e := e || '{"nonprofits": "You can select up to 3 nonprofits for your request."}';
  elsif exists (select 1 from unnest(r.nonprofits) x where not exists (select 1 from public.nonprofits n where n.id = x and n.status = 'active')) then
    e := e || '{"nonprofits": "One of the chosen nonprofits is no longer available. Please choose another."}'; end if;
  if length(btrim(r.description)) < 10 then e := e || '{"description": "Description must be at least 10 characters"}';
  elsif length(r.description) > 5000 then e := e || '{"description": "Description must be at most 5000 characters"}'; end if;
  if r.amount <> 'Not specified' and regexp_replace(r.amount, '[$, ]', '', 'g') !~ '^[0-9]{1,7}(\.[0-9]{1,2})?$' then
    e := e || '{"amount": "Amount must be a number"}'; end if;
  if not r.contact_consent then e := e || '{"contact_consent": "You must agree to be contacted"}'; end if;
  if coalesce(r.urgency, 'low') not in ('low', 'medium', 'high') then e := e || '{"urgency": "Please choose one of the answers"}'; end if;
  if coalesce(r.preferred_contact, 'email') not in ('email', 'phone') then e := e || '{"preferred_contact": "Please choose one of the answers"}'; end if;
  if coalesce(length(r.first_name), 0) not between 2 and 100 then e := e || '{"first_name": "First name is required"}'; end if;
  if coalesce(length(r.last_name), 0) not between 2 and 100 then e := e || '{"last_name": "Last name is required"}'; end if;
  if not private.valid_email(r.email) then e := e || '{"email": "Please enter a valid email address"}'; end if;
  if coalesce(length(r.phone), 0) not between 5 and 40 then e := e || '{"phone": "Phone number is required"}'; end if;
  if coalesce(length(r.address), 0) not between 5 and 300 then e := e || '{"address": "Street address is required"}'; end if;
  if coalesce(length(r.city), 0) not between 2 and 100 then e := e || '{"city": "City is required"}'; end if;
  if coalesce(length(r.state), 0) not between 2 and 100 then e := e || '{"state": "State/Province is required"}'; end if;
  if coalesce(length(r.postal_code), 0) not between 2 and 20 then e := e || '{"postal_code": "Postal/ZIP code is required"}'; end if;
  return e;
end $$;

create or replace function private.next_request_number() returns text
language sql volatile security definer set search_path = '' as $$
  select 'REQ-' || lpad(n::text, greatest(3, length(n::text)), '0') from nextval('public.request_number_seq') n
$$;

create or replace function private.submit_answer(r public.requests, p_repeated boolean) returns jsonb
language sql stable set search_path = '' as $$
  select jsonb_build_object('id', r.id, 'request_number', r.request_number, 'status', r.status,
    'submitted_at', r.submitted_at, 'email', r.email, 'repeated', p_repeated)
$$;

-- The content of a request, without transport fields.
create or replace function private.request_content(p_input jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select p_input - array['key', 'draft_id', 'form', 'step', 'proof', 'account_id', 'title', 'seen']
$$;

-- Sends a request, signed in or not. The client's key makes repeats harmless: the same key gives the same request.
create or replace function private.send_request(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := auth.uid();
  owner uuid := uid;
  k uuid;
  r public.requests;
  draft public.requests;
  errors jsonb;
  proved text;
  missing text;
  org record;
begin
  begin
    k := (input ->> 'key')::uuid;
  exception when invalid_text_representation then k := null;
  end;
  if k is null then
    perform private.fail(422, 'validation_failed', 'The request carries no key.', '{"fields": {"key": "A key is required"}}');
  end if;
  perform pg_advisory_xact_lock(hashtextextended('submit:' || k, 0));
  perform pg_advisory_xact_lock(hashtextextended('slots:' || k, 0));
  select * into r from public.requests x where x.submit_key = k and x.status <> 'draft';
  if found then
    if uid is not null and r.user_id is not null and r.user_id <> uid then perform private.fail_request_not_found(); end if;
    return private.submit_answer(r, true);
  end if;

  if private.clean(input ->> 'draft_id') is not null then
    perform private.require_user();
    draft := private.require_draft(input ->> 'draft_id');
    r := private.apply_answers(draft, input);
    perform private.require_seen(draft, r, input ->> 'seen');
  else
    r := jsonb_populate_record(null::public.requests, '{"nonprofits": [], "description": "", "amount": "Not specified", "contact_consent": false, "sms_consent": false, "form": "wizard", "step": 5}');
    r.id := gen_random_uuid()::text;
    r := private.apply_answers(r, input);
  end if;
  r.sms_consent := r.sms_consent and private.sms_number(r.phone) is not null;
  if uid is not null and r.email is null then
    select p.email into r.email from public.profiles p where p.id = uid;
  end if;
  if cardinality(r.nonprofits) > 3 then
    perform private.fail(422, 'too_many_nonprofits', 'You can select up to 3 nonprofits for your request.',
      '{"fields": {"nonprofits": "You can select up to 3 nonprofits for your request."}}');
  end if;
  errors := private.submission_errors(r);
  if errors <> '{}' then
    perform private.fail(422, 'validation_failed', 'Please check the marked fields.', jsonb_build_object('fields', errors));
  end if;
  r.amount_requested := nullif(private.amount_number(nullif(r.amount, 'Not specified')), 0);
  r.amount := private.amount_text(r.amount_requested);

  if uid is null and private.clean(input ->> 'account_id') is not null then
    select a.email into proved from private.address_proofs a
    where a.token_hash = private.hash_token(input ->> 'proof') and a.expires_at > now();
    select u.user_id into owner from private.account_addresses u
    where u.user_id::text = input ->> 'account_id' and u.email = proved and u.proved_at is not null and proved = private.folded(r.email);
    if owner is null then
      perform private.fail(403, 'account_mismatch', 'This account does not match the address you proved. Please try again.');
    end if;
  end if;
  if uid is null then
    perform private.require_rate('submit:' || private.client_network(), 10, interval '1 hour');
  else
    perform private.require_rate('submit:' || uid, 30, interval '1 hour');
  end if;
  -- each request mails that address. Accounts are cheap, so theirs count too, except those to their own address
  if uid is null or not exists (select 1 from private.account_addresses a where a.user_id = uid and a.email = private.folded(r.email)) then
    perform private.require_rate('submit-for:' || lower(r.email), 10, interval '1 day');
  end if;

  if private.clean(input ->> 'draft_id') is null then
    insert into public.requests (id, user_id, form, step) values (r.id, owner, r.form, 5);
  end if;
  perform private.write_answers(r);
  update public.requests x set user_id = owner, submit_key = k, request_number = private.next_request_number(), status = 'pending', language = private.caller_language(),
    amount = r.amount, amount_requested = r.amount_requested, submitted_at = now(), step = 5,
    title = coalesce(r.title, x.category)
  where x.id = r.id returning * into r;
  -- consent given here can be withdrawn in the profile
  if r.sms_consent then
    update public.profiles p set sms_consent = true where p.id = uid and not p.sms_consent;
  end if;

  -- the files of the draft and those in a guest's slots under this key; all must be stored
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes, uploaded_by)
  select r.id, s.name, s.path, s.mime_type, s.size_bytes, uid
  from private.guest_upload_slots s
  where s.submit_key = k and s.request_id is null
    and s.id::text in (select jsonb_array_elements_text(case when jsonb_typeof(input -> 'slots') = 'array' then input -> 'slots' else '[]'::jsonb end));
  select d.name into missing from public.request_documents d where d.request_id = r.id and not private.document_object_exists(d.path) limit 1;
  if missing is not null then
    perform private.fail(422, 'document_missing', missing || ' did not arrive. Please upload it again or remove it.', jsonb_build_object('name', missing));
  end if;
  if jsonb_typeof(input -> 'slots') = 'array' and exists (select 1 from jsonb_array_elements_text(input -> 'slots') x
    where not exists (select 1 from private.guest_upload_slots s where s.id::text = x and s.submit_key = k)) then
    perform private.fail(422, 'document_missing', 'A document expired before you sent the request. Please upload it again.');
  end if;
  update private.guest_upload_slots s set request_id = r.id from public.request_documents d
  where d.request_id = r.id and d.path = s.path;
  if (select count(*) from public.request_documents d where d.request_id = r.id) > 5 then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of 5 files.', '{"max": 5}');
  end if;

  insert into public.request_nonprofits (request_id, nonprofit_id, submitted_at) select r.id, x, r.submitted_at from unnest(r.nonprofits) x;
  insert into public.request_events (request_id, type, actor, actor_user_id) values (r.id, 'submitted', 'requester', owner);
  perform private.notify(owner, 'success', 'sent', jsonb_build_object('number', r.request_number, 'category', r.category), '/request/' || r.id, r.id);
  for org in select n.id, n.name from public.nonprofits n where n.id = any (r.nonprofits) loop
    perform private.notify_staff(org.id, 'update', case when r.amount_requested is null then 'newRequestOpen' else 'newRequest' end,
      jsonb_build_object('number', r.request_number, 'category', r.category, 'amount', r.amount_requested), '/nonprofit-request/' || r.id, r.id);
  end loop;
  perform private.mail_words(r.email, r.language, 'sent', jsonb_build_object('number', r.request_number, 'category', r.category,
      'hello', private.say(r.language, 'mail.hello', jsonb_build_object('name', r.first_name)),
      'nonprofits', (select string_agg(n.name, ', ' order by array_position(r.nonprofits, n.id)) from public.nonprofits n where n.id = any (r.nonprofits))),
    jsonb_build_object('number', r.request_number, 'link', private.request_link(r)));
  return private.submit_answer(r, false);
end $$;

-- Sends a request. Without a draft id, uses the caller's draft of the same key, if there is one.
create or replace function public.submit_request(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare draft text; r record; answer jsonb; scope text := 'request:' || coalesce(auth.uid()::text, ''); k uuid;
begin
  begin k := (input ->> 'key')::uuid; exception when invalid_text_representation then k := null; end;
  perform pg_advisory_xact_lock(hashtextextended('submit:' || k, 0));
  select x.id, x.request_number into r from public.requests x where x.submit_key = k and x.status <> 'draft' and (auth.uid() is null or x.user_id = auth.uid());
  if found then
    perform private.require_same_content(scope, k, private.request_content(input),
      'Your request was sent already, as ' || r.request_number || '. What you changed since was not sent.',
      jsonb_build_object('request_number', r.request_number));
  end if;
  if private.clean(input ->> 'draft_id') is null then
    draft := private.named_draft(auth.uid(), input ->> 'key');
    if draft is not null then
      perform pg_advisory_xact_lock(hashtextextended('draft:' || draft, 0));
      if exists (select 1 from public.requests x where x.id = draft and x.user_id = auth.uid() and x.status = 'draft') then
        input := input || jsonb_build_object('draft_id', draft);
      end if;
    end if;
  end if;
  answer := private.send_request(input);
  perform private.keep_content(scope, k, private.request_content(input));
  return answer;
end $$;

-- -------------------------------------------------------------------------------------- a look from outside, by number

-- Status, dates and decision of a request by its number; nothing that identifies a person, no free text.
create or replace function public.request_status(number text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare n text := upper(private.clean(request_status.number)); r public.requests;
begin
  if coalesce(length(n), 0) < 3 then
    perform private.fail(422, 'validation_failed', 'Request ID is required', '{"fields": {"number": "Request ID is required"}}');
  end if;
  perform private.require_rate('look-up:' || private.client_network(), 30, interval '1 minute');
  n := private.number_of(n);
  select * into r from public.requests x where x.request_number = n and x.status <> 'draft';
  if not found then return '{"found": false}'; end if;
  return jsonb_build_object('found', true, 'request_number', r.request_number,
    'status', case when r.status = 'pending' and r.review_started_at is not null and not r.needs_more_proof then 'in_review' else r.status end,
    'waits_for_you', r.needs_more_proof, 'submitted_at', r.submitted_at, 'review_started_at', r.review_started_at, 'decided_at', r.decided_at,
    'awarded', case when r.status = 'approved' then r.amount_approved end,
    'reason_code', case when r.status = 'declined' then r.denial_reason_code end,
    'reason', case when r.status = 'declined' then (select d.label from public.denial_reasons d where d.code = r.denial_reason_code) end);
end $$;

-- ----------------------------------------------------------------------------------------- a way in without an account

-- Sends a code for a request: to its address, or with 'sms' as a text to its number if there is consent, else also to
-- its address. The answer is the same whether or not the request exists.
create or replace function public.send_request_code(number text, channel text default 'email') returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests; network text := private.client_network(); code text := private.new_code(); texted bigint; spoken text; params jsonb;
begin
  if length(private.number_of(send_request_code.number)) < 3 then
    perform private.fail_fields('Request ID is required', '{"number": "Request ID is required"}');
  end if;
  perform private.require_rate('request-code-caller:' || network, 15, interval '1 hour');
  perform private.require_rate('request-code-pair:' || network || ':' || private.number_of(send_request_code.number), 5, interval '1 hour');
  select * into r from public.requests x where x.request_number = private.number_of(send_request_code.number) and x.status <> 'draft';
  -- The address's limits are silent, because a refusal would reveal that the request exists. One network has few, so that a
  -- stranger with the number leaves the person's own; that of all networks together is against floods of mail.
  if r.id is not null and not private.is_erased(r.email) and private.take('request-code-for:' || lower(r.email) || ':' || network, 10, interval '1 day')
    and private.take('request-code-for:' || lower(r.email), 100, interval '1 day') then
    update private.request_codes c set expires_at = now() where c.request_id = r.id and c.asker = network and c.used_at is null and c.expires_at > now();
    insert into private.request_codes (request_id, asker, code_hash) values (r.id, network, private.hash_token(r.id || ':' || code));
    spoken := private.language_of(r);
    params := jsonb_build_object('code', code, 'number', r.request_number);
    -- texts cost money, so the limit per network is lower
    if send_request_code.channel = 'sms' and r.sms_consent and private.take('request-code-text:' || network, 5, interval '1 day') then
      texted := ferrobase.send_sms(private.sms_number(r.phone), private.say(spoken, 'mail.sms.code', params));
    end if;
    if texted is null then
      perform private.mail_words(r.email, spoken, 'requestCode', params, jsonb_build_object('number', code));
    end if;
  end if;
  return '{"sent": true}';
end $$;

-- Checks a mailed code. A wrong code is not an error, so that the counted try is not rolled back.
create or replace function public.check_request_code(number text, code text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare c private.request_codes; r public.requests; a private.request_access; network text := private.client_network(); token text := private.new_token();
begin
  perform private.require_rate('check-code:' || network, 60, interval '1 hour');
  select * into r from public.requests x where x.request_number = private.number_of(check_request_code.number) and x.status <> 'draft';
  update private.request_codes x set tries = x.tries + 1
  where x.id = (select y.id from private.request_codes y
                where y.request_id = r.id and y.asker = network and y.used_at is null and y.expires_at > now() and y.tries < 5
                order by y.created_at desc limit 1 for update)
  returning * into c;
  if c.id is null then return '{"ok": false, "reason": "expired", "tries_left": 0}'; end if;
  if c.code_hash <> private.hash_token(r.id || ':' || regexp_replace(coalesce(check_request_code.code, ''), '\D', '', 'g')) then
    return jsonb_build_object('ok', false, 'reason', case when c.tries >= 5 then 'expired' else 'wrong_code' end, 'tries_left', 5 - c.tries);
  end if;
  update private.request_codes x set used_at = now() where x.id = c.id;
  update private.unanswered_requests u set kept_at = now() where u.request_id = r.id;
  insert into private.request_access (token_hash, request_id) values (private.hash_token(token), r.id) returning * into a;
  return jsonb_build_object('ok', true, 'access', token, 'upload_key', a.upload_key, 'expires_at', a.expires_at, 'id', r.id, 'request_number', r.request_number);
end $$;

-- Ends this device's access to the request.
create or replace function public.end_request_access(access text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from private.request_access a where a.token_hash = private.hash_token(end_request_access.access);
  return found;
end $$;

-- ------------------------------------------------------------------------------------------------------- after sending

-- The caller's own request, by account or mailed code; null if it is neither.
create or replace function private.own_request(p_id text, p_access text) returns public.requests
language plpgsql stable security definer set search_path = '' as $$
declare r public.requests;
begin
  if p_access is not null then
    select x.* into r from private.request_access a join public.requests x on x.id = a.request_id
    where a.token_hash = private.hash_token(p_access) and a.expires_at > now() and x.id = private.request_id_of(p_id);
    if not found then
      perform private.fail(401, 'access_ended', 'For your safety this page closed itself. Ask for a new code to open your request again.');
    end if;
    return r;
  end if;
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(p_id) and x.user_id = auth.uid();
  return r;
end $$;

-- The caller's request, locked, by id or number; or 404.
create or replace function private.require_own_request(p_id text) returns public.requests
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests;
begin
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(p_id) and x.user_id = auth.uid() for update;
  if not found then perform private.fail_request_not_found(); end if;
  return r;
end $$;

-- The same, locked; or 404.
create or replace function private.require_own_request(p_id text, p_access text) returns public.requests
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests := private.own_request(p_id, p_access);
begin
  if r.id is null then perform private.fail_request_not_found(); end if;
  if p_access is not null then perform private.require_rate('by-code:' || r.id, 60, interval '1 hour'); end if;
  select * into r from public.requests x where x.id = r.id for update;
  return r;
end $$;

-- Everything the request's page shows, including which of its nonprofits are still active.
create or replace function public.request_detail(id text, access text default null) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests;
begin
  r := private.own_request(request_detail.id, request_detail.access);
  if r.id is null then
    perform private.fail(404, 'request_not_found', 'We couldn''t find a request with the ID you provided. Please check the ID and try again.');
  end if;
  return jsonb_build_object(
    'request', to_jsonb(r) - array['submit_key', 'first_approved_by'],
    'documents', private.documents_of(r.id),
    'timeline', coalesce((select jsonb_agg(jsonb_build_object('type', e.type, 'actor', e.actor, 'nonprofit_id', e.nonprofit_id,
        'nonprofit_name', n.name, 'note', e.note, 'amount', e.amount, 'created_at', e.created_at) order by e.created_at, e.id)
      from public.request_events e left join public.nonprofits n on n.id = e.nonprofit_id
      where e.request_id = r.id and e.for_requester), '[]'::jsonb),
    'nonprofits', coalesce((select jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name, 'location', n.location,
        'average_response_time_days', n.average_response_time_days, 'logo_path', n.logo_path, 'state', p.state, 'active', n.status = 'active')
        order by array_position(r.nonprofits, n.id))
      from public.nonprofits n left join public.request_nonprofits p on p.nonprofit_id = n.id and p.request_id = r.id
      where n.id = any (r.nonprofits)), '[]'::jsonb),
    'can', jsonb_build_object('cancel', r.status in ('pending', 'processing'), 'add_documents', r.status = 'pending' and r.needs_more_proof,
      'resubmit', r.user_id is not null and r.status in ('withdrawn', 'declined'), 'edit', r.status = 'draft', 'correct', r.status in ('pending', 'processing')));
end $$;

create or replace function public.correct_request(id text, input jsonb, access text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests := private.require_own_request(correct_request.id, correct_request.access);
  fields constant text[] := array['first_name', 'last_name', 'phone', 'sms_consent', 'address', 'city', 'state', 'postal_code'];
  given jsonb; errors jsonb; p record;
begin
  if r.status not in ('pending', 'processing') then perform private.fail_decided(r, null); end if;
  select jsonb_object_agg(k, v) into given from jsonb_each(coalesce(correct_request.input, '{}')) t (k, v) where k = any (fields) and to_jsonb(r) -> k is distinct from v;
  if given is null then return '{"corrected": false}'; end if;
  -- with another number the consent must be given again
  if correct_request.input ? 'sms_consent' then given := given || jsonb_build_object('sms_consent', correct_request.input -> 'sms_consent'); end if;
  r := private.apply_answers(r, given);
  r.sms_consent := r.sms_consent and private.sms_number(r.phone) is not null;
  select jsonb_object_agg(k, v) into errors from jsonb_each(private.submission_errors(r)) t (k, v) where k = any (fields);
  perform private.fail_fields('Please check the marked fields.', coalesce(errors, '{}'));
  perform private.write_answers(r);
  insert into public.request_events (request_id, type, actor, actor_user_id) values (r.id, 'corrected', 'requester', auth.uid());
  for p in select x.nonprofit_id from public.request_nonprofits x where x.request_id = r.id and x.state in ('open', 'claimed') and x.opened_at is not null loop
    perform private.notify_staff(p.nonprofit_id, 'update', 'corrected', jsonb_build_object('number', r.request_number), '/nonprofit-request/' || r.id, r.id);
  end loop;
  return '{"corrected": true}';
end $$;

create or replace function public.withdraw_request(id text, access text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests := private.require_own_request(withdraw_request.id, withdraw_request.access); p record;
begin
  if r.status not in ('pending', 'processing') then perform private.fail_decided(r, null); end if;
  delete from private.first_approvals f where f.request_id = r.id;
  update public.requests x set status = 'withdrawn', needs_more_proof = false, decided_at = now() where x.id = r.id;
  for p in update public.request_nonprofits q set state = 'withdrawn', acted_at = now()
    where q.request_id = r.id and q.state in ('open', 'claimed') returning q.nonprofit_id, q.opened_at
  loop
    if p.opened_at is not null then
      perform private.notify_staff(p.nonprofit_id, 'info', 'takenBack', jsonb_build_object('number', r.request_number), '/nonprofit-request/' || r.id, r.id);
    end if;
  end loop;
  insert into public.request_events (request_id, type, actor, actor_user_id) values (r.id, 'withdrawn', 'requester', auth.uid());
  perform private.notify(r.user_id, 'info', 'withdrawn', jsonb_build_object('number', r.request_number), '/request/' || r.id, r.id);
  return '{"status": "withdrawn"}';
end $$;

-- A new draft with the answers and documents of a withdrawn or declined request.
create or replace function public.resubmit_request(id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests := private.require_own_request(resubmit_request.id); d text;
begin
  if r.status not in ('withdrawn', 'declined') then
    perform private.fail(409, 'not_resubmittable', 'Only a withdrawn or declined request can be sent again.', jsonb_build_object('status', r.status));
  end if;
  select x.id into d from public.requests x where x.resubmitted_from = r.id and x.status = 'draft' and x.user_id = r.user_id limit 1;
  if d is not null then return jsonb_build_object('draft_id', d); end if;
  perform private.hold_draft_place(r.user_id);
  insert into public.requests (user_id, category_id, category, title, description, amount, nonprofits, first_name, last_name, email, phone,
    address, city, state, postal_code, urgency, preferred_contact, contact_consent, form, resubmitted_from)
  values (r.user_id, r.category_id, r.category, r.title, r.description, private.amount_text(r.amount_requested),
    array(select x from unnest(r.nonprofits) with ordinality t (x, i) join public.nonprofits n on n.id = x and n.status = 'active' order by i),
    r.first_name, r.last_name, r.email, r.phone, r.address, r.city, r.state, r.postal_code, r.urgency, r.preferred_contact, false, r.form, r.id)
  returning requests.id into d;
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes, uploaded_by)
  select d, o.name, o.path, o.mime_type, o.size_bytes, o.uploaded_by from public.request_documents o
  where o.request_id = r.id order by o.created_at limit 5;
  return jsonb_build_object('draft_id', d);
end $$;

-- The answer to 'needs more proof': a message, the documents added since the question, or both. The same text again
-- counts as the same answer.
create or replace function public.answer_request_info(id text, message text default null, access text default null, slots jsonb default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests := private.require_own_request(answer_request_info.id, answer_request_info.access);
  note text := private.clean(answer_request_info.message);
  added int; asked timestamptz;
begin
  -- a guest's documents: from the slots of this access, each once, at most ten per question
  if answer_request_info.access is not null and r.status = 'pending' and r.needs_more_proof and jsonb_typeof(answer_request_info.slots) = 'array' then
    with come as (
      insert into public.request_documents (request_id, name, path, mime_type, size_bytes, kind, created_at)
      select r.id, s.name, s.path, s.mime_type, s.size_bytes, 'additional', clock_timestamp()
      from private.guest_upload_slots s join private.request_access a on a.upload_key = s.submit_key and a.request_id = r.id
        and a.token_hash = private.hash_token(answer_request_info.access)
      where s.request_id is null and s.id::text in (select jsonb_array_elements_text(answer_request_info.slots)) and private.document_object_exists(s.path)
      returning path
    ) update private.guest_upload_slots s set request_id = r.id from come where s.path = come.path;
    get diagnostics added = row_count;
    if added <> jsonb_array_length(answer_request_info.slots) then
      perform private.fail(422, 'document_missing', 'A document did not arrive. Please upload it again or remove it.');
    end if;
    perform private.require_proof_places(r.id, 0);
  end if;
  select max(e.created_at) into asked from public.request_events e where e.request_id = r.id and e.type = 'info_requested';
  select count(*) into added from public.request_documents d where d.request_id = r.id and d.kind = 'additional' and d.created_at > coalesce(asked, r.submitted_at);
  if r.status <> 'pending' or not r.needs_more_proof then
    if r.status = 'pending' and exists (select 1 from public.request_events e where e.request_id = r.id and e.type = 'info_answered'
      and e.created_at > asked and e.actor_user_id is not distinct from auth.uid() and e.note is not distinct from private.clean(answer_request_info.message)) then
      return jsonb_build_object('status', 'pending', 'documents', added, 'repeated', true);
    end if;
    perform private.fail_decided(r, null);
  end if;
  if note is null and added = 0 then
    perform private.fail(422, 'nothing_to_send', 'Please select at least one document to upload.',
      '{"fields": {"documents": "Please select at least one document to upload."}}');
  end if;
  if length(note) > 5000 then
    perform private.fail(422, 'validation_failed', 'The message is too long.', '{"fields": {"message": "Please use at most 5000 characters"}}');
  end if;
  update public.requests x set needs_more_proof = false where x.id = r.id;
  if added > 0 then
    insert into public.request_events (request_id, type, actor, actor_user_id, note)
    values (r.id, 'documents_added', 'requester', auth.uid(), added || ' document(s) have been uploaded.');
  end if;
  insert into public.request_events (request_id, type, actor, actor_user_id, note) values (r.id, 'info_answered', 'requester', auth.uid(), note);
  perform private.notify(r.user_id, 'info', case when added > 0 then 'documents' else 'answerSent' end, jsonb_build_object('count', added), '/request/' || r.id, r.id);
  perform private.notify_staff(r.claimed_by, 'update', case when added > 0 then 'answeredDocuments' else 'answered' end,
    jsonb_build_object('number', r.request_number, 'count', added), '/nonprofit-request/' || r.id, r.id);
  return jsonb_build_object('status', 'pending', 'documents', added, 'repeated', false);
end $$;

create or replace function public.requester_dashboard() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare uid uuid := private.require_user();
begin
  return (select jsonb_build_object(
    'total_aid_received', coalesce(sum(r.amount_approved) filter (where r.status = 'approved'), 0),
    'total_requests', count(*) filter (where r.status <> 'draft'),
    'in_process', count(*) filter (where r.status in ('pending', 'processing')),
    'drafts', count(*) filter (where r.status = 'draft'),
    'nonprofits_connected', (select count(distinct p.nonprofit_id) from public.request_nonprofits p join public.requests q on q.id = p.request_id where q.user_id = uid),
    'to_do', coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'request_number', q.request_number, 'category', q.category,
        'pending_notes', q.pending_notes, 'nonprofit_name', n.name) order by q.updated_at)
      from public.requests q left join public.nonprofits n on n.id = q.claimed_by where q.user_id = uid and q.needs_more_proof), '[]'::jsonb),
    'recent', coalesce((select jsonb_agg(to_jsonb(m) - 'search_text' order by m.submitted_at desc)
      from (select * from public.my_requests order by submitted_at desc limit 5) m), '[]'::jsonb))
  from public.requests r where r.user_id = uid);
end $$;

-- Whether personal data was removed from the request with this address.
create or replace function private.is_erased(p_email text) returns boolean
language sql immutable set search_path = '' as $$
  select p_email = 'erased@closed.invalid'
$$;

-- Who a request is from, for counting people. Each erased request counts as a person of its own, so that totals do not fall
-- when personal data is removed.
create or replace function private.person_of(r public.requests) returns text
language sql immutable set search_path = '' as $$
  select coalesce(r.user_id::text, case when private.is_erased(r.email) then r.id else lower(r.email) end)
$$;

-- Removes personal data from requests that remain in a nonprofit's books: number, category, amounts and dates stay.
create or replace function private.erase_people(p_requests text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform private.remove_documents(p_requests);
  update public.request_events e set note = null, actor_user_id = case when e.actor = 'nonprofit' then e.actor_user_id end
  where e.request_id = any (p_requests);
  update public.request_nonprofits p set reason = null where p.request_id = any (p_requests) and p.reason is not null;
  delete from private.request_codes c where c.request_id = any (p_requests);
  delete from private.request_access a where a.request_id = any (p_requests);
  update public.requests r set user_id = null, title = null, description = 'Erased: the account was closed or the time to keep it is over.',
    first_name = 'Erased', last_name = 'Person', email = 'erased@closed.invalid', phone = 'Erased', address = 'Erased', city = 'Erased', state = 'Erased',
    postal_code = 'Erased', pending_notes = null, denial_reason = case when r.status = 'declined' then 'Erased' end, urgency = null, preferred_contact = null, submit_key = null, sms_consent = false
  where r.id = any (p_requests);
end $$;
