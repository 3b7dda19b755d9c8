-- Sending a request: categories, drafts, a guest's files, the submission itself, the public look-up.

create function functions."get-categories"(input jsonb default '{}'::jsonb) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object('categories', coalesce(jsonb_agg(
    jsonb_build_object('id', c.id, 'name', c.name, 'description', c.description) order by c.nonprofit_id nulls first, c.id), '[]'::jsonb))
  from public.categories c
  where c.is_active and (c.nonprofit_id is null or c.nonprofit_id = input ->> 'nonprofit_id')
$$;

-- The request with this id or number, whichever was given.
create function private.request_id_of(p text) returns text
language sql stable security definer set search_path = '' as $$
  select coalesce(
    (select r.id from public.requests r where r.id = private.clean(p)),
    (select r.id from public.requests r where r.request_number = upper(private.clean(p))))
$$;

create function private.fail_request_not_found() returns void
language plpgsql set search_path = '' as $$
begin
  perform private.fail(404, 'request_not_found', 'The requested aid request could not be found.');
end $$;

-- The fields of r with those of p_input laid over it. Only the keys that p_input has change; contact and answers alone.
create function private.apply_answers(r public.requests, p_input jsonb) returns public.requests
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
  if i ? 'phone' then r.phone := private.clean(i ->> 'phone'); end if;
  if i ? 'address' then r.address := private.clean(i ->> 'address'); end if;
  if i ? 'city' then r.city := private.clean(i ->> 'city'); end if;
  if i ? 'state' then r.state := private.clean(i ->> 'state'); end if;
  if i ? 'postal_code' then r.postal_code := private.clean(i ->> 'postal_code'); end if;
  return r;
end $$;

create function private.write_answers(r public.requests) returns void
language sql volatile security definer set search_path = '' as $$
  update public.requests x set
    category_id = r.category_id, category = r.category, nonprofits = r.nonprofits, title = r.title, description = r.description,
    amount = r.amount, urgency = r.urgency, preferred_contact = r.preferred_contact, contact_consent = r.contact_consent,
    form = r.form, step = r.step, first_name = r.first_name, last_name = r.last_name, email = r.email, phone = r.phone,
    address = r.address, city = r.city, state = r.state, postal_code = r.postal_code
  where x.id = r.id
$$;

-- The caller's draft, locked; or 404, or 409 when it was sent meanwhile.
create function private.require_draft(p_id text) returns public.requests
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests;
begin
  select * into r from public.requests x where x.id = p_id and x.user_id = auth.uid() for update;
  if not found then perform private.fail_request_not_found(); end if;
  if r.status <> 'draft' then perform private.fail_decided(r, null); end if;
  return r;
end $$;

-- 409 with the state as it now is. p_nonprofit_id: the organization that asks, null for the person.
create function private.fail_decided(r public.requests, p_nonprofit_id text) returns void
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

create function public.save_draft(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare uid uuid := private.require_user(); r public.requests;
begin
  if private.clean(input ->> 'id') is not null then
    r := private.require_draft(input ->> 'id');
  else
    if (select count(*) from public.requests x where x.user_id = uid and x.status = 'draft') >= 50 then
      perform private.fail(409, 'too_many_drafts', 'You have 50 saved drafts. Please delete one first.');
    end if;
    insert into public.requests (user_id) values (uid) returning * into r;
  end if;
  perform private.write_answers(private.apply_answers(r, input));
  return (select jsonb_build_object('id', x.id, 'updated_at', x.updated_at) from public.requests x where x.id = r.id);
end $$;

-- ------------------------------------------------------------------------------------------------ guests' files

-- Deletes files that belong to no sent request and are older than 24 hours; gives their object names.
create function public.sweep_guest_files() returns setof text
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform set_config('storage.allow_delete_query', 'true', true);
  return query
    delete from storage.objects o
    where o.bucket_id = 'request-documents' and o.created_at < now() - interval '24 hours'
      and not exists (select 1 from public.request_documents d where d.path = o.name)
      and not exists (select 1 from public.requests r where r.id = split_part(o.name, '/', 1))
    returning o.name;
  delete from private.guest_upload_slots s where s.request_id is null and s.created_at < now() - interval '24 hours';
  perform set_config('storage.allow_delete_query', 'false', true);
end $$;

create function public.create_guest_upload_slot(key uuid, name text, mime_type text, size_bytes bigint) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  who text := private.client_address();
  file text := left(private.clean(create_guest_upload_slot.name), 255);
  new_id uuid := gen_random_uuid();
  ext text;
  s private.guest_upload_slots;
begin
  if create_guest_upload_slot.key is null or file is null then
    perform private.fail(422, 'validation_failed', 'Please select at least one document to upload.');
  end if;
  ext := case create_guest_upload_slot.mime_type when 'application/pdf' then 'pdf' when 'image/jpeg' then 'jpg' when 'image/png' then 'png'
    when 'application/msword' then 'doc' when 'application/vnd.openxmlformats-officedocument.wordprocessingml.document' then 'docx' end;
  if ext is null then perform private.fail(422, 'file_type', file || ' is not an accepted file type.', jsonb_build_object('name', file)); end if;
  if coalesce(create_guest_upload_slot.size_bytes, 0) not between 1 and 10485760 then
    perform private.fail(422, 'file_too_large', file || ' exceeds the maximum file size of 10MB.', jsonb_build_object('name', file));
  end if;
  perform private.require_rate('slots:' || who, 30, interval '1 hour');
  perform pg_advisory_xact_lock(hashtextextended('slots:' || create_guest_upload_slot.key, 0));
  if exists (select 1 from public.requests r where r.submit_key = create_guest_upload_slot.key) then
    perform private.fail(409, 'request_already_decided', 'This request has already been submitted.', '{"status": "pending"}');
  end if;
  if (select count(*) from private.guest_upload_slots x where x.submit_key = create_guest_upload_slot.key) >= 5 then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of 5 files.', '{"max": 5}');
  end if;
  -- the first slot of each quarter of an hour sweeps
  insert into private.rate_limits (key, window_start, hits) values ('sweep', date_bin('15 minutes', now(), timestamptz '2000-01-01'), 1)
  on conflict do nothing;
  if found then perform public.sweep_guest_files(); end if;
  insert into private.guest_upload_slots (id, submit_key, path, name, mime_type, size_bytes, address)
  values (new_id, create_guest_upload_slot.key, 'guest/' || private.new_token() || '.' || ext, file, create_guest_upload_slot.mime_type,
    create_guest_upload_slot.size_bytes, who)
  returning * into s;
  return jsonb_build_object('id', s.id, 'bucket', 'request-documents', 'path', s.path, 'expires_at', s.expires_at);
end $$;

-- The slot and its file go; the id is the secret.
create function public.remove_guest_upload_slot(id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare gone text;
begin
  delete from private.guest_upload_slots s where s.id = remove_guest_upload_slot.id and s.request_id is null returning s.path into gone;
  if gone is null then return false; end if;
  perform set_config('storage.allow_delete_query', 'true', true);
  delete from storage.objects o where o.bucket_id = 'request-documents' and o.name = gone;
  perform set_config('storage.allow_delete_query', 'false', true);
  return true;
end $$;

-- --------------------------------------------------------------------------------------------------- submission

-- What section 5 says about a request that is to be sent: {field: message}, {} when all is well.
create function private.submission_errors(r public.requests) returns jsonb
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

create function private.next_request_number() returns text
language sql volatile security definer set search_path = '' as $$
  select 'REQ-' || lpad(n::text, greatest(3, length(n::text)), '0') from nextval('public.request_number_seq') n
$$;

-- Where the person reads about a request: its page with an account, the public look-up without.
create function private.request_link(r public.requests) returns text
language sql stable security definer set search_path = '' as $$
  select private.site_link(case when r.user_id is not null then '/request/' || r.id else '/request-status?id=' || r.request_number end)
$$;

create function private.submit_answer(r public.requests, p_repeated boolean) returns jsonb
language sql stable set search_path = '' as $$
  select jsonb_build_object('id', r.id, 'request_number', r.request_number, 'status', r.status,
    'submitted_at', r.submitted_at, 'email', r.email, 'repeated', p_repeated)
$$;

-- Sends a request, signed in or not. The client's key makes repeats harmless: the same key gives the same request.
create function public.submit_request(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := auth.uid();
  owner uuid := uid;
  k uuid;
  r public.requests;
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
    r := private.require_draft(input ->> 'draft_id');
  else
    r := jsonb_populate_record(null::public.requests, '{"nonprofits": [], "description": "", "amount": "Not specified", "contact_consent": false, "form": "wizard", "step": 5}');
    r.id := gen_random_uuid()::text;
  end if;
  r := private.apply_answers(r, input);
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
    where u.user_id::text = input ->> 'account_id' and u.email = proved and proved = lower(r.email);
    if owner is null then
      perform private.fail(403, 'account_mismatch', 'This account does not match the address you proved. Please try again.');
    end if;
  end if;
  if uid is null then
    perform private.require_rate('submit:' || private.client_address(), 10, interval '1 hour');
  else
    perform private.require_rate('submit:' || uid, 30, interval '1 hour');
  end if;
  -- each sends that address a mail; accounts are cheap, so theirs count as well, but not those to their own address
  if uid is null or not exists (select 1 from private.account_addresses a where a.user_id = uid and a.email = lower(r.email)) then
    perform private.require_rate('submit-for:' || lower(r.email), 10, interval '1 day');
  end if;

  if private.clean(input ->> 'draft_id') is null then
    insert into public.requests (id, user_id, form, step) values (r.id, owner, r.form, 5);
  end if;
  perform private.write_answers(r);
  update public.requests x set user_id = owner, submit_key = k, request_number = private.next_request_number(), status = 'pending',
    amount = r.amount, amount_requested = r.amount_requested, submitted_at = now(), step = 5,
    title = coalesce(r.title, x.category)
  where x.id = r.id returning * into r;

  -- the files: those of the draft, and those a guest put into slots under this key; every one must have arrived
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
  perform private.notify(owner, 'success', 'Request Submitted', 'Your request ' || r.request_number || ' for ' || r.category || ' is on its way.', '/request/' || r.id, r.id);
  for org in select n.id, n.name from public.nonprofits n where n.id = any (r.nonprofits) loop
    perform private.notify_staff(org.id, 'update', 'New request ' || r.request_number, r.category || ', ' ||
      case when r.amount_requested is null then 'no amount given' else r.amount end || '.', '/nonprofit-request/' || r.id, r.id);
  end loop;
  perform private.mail(r.email, r.request_number || ': we have your request', jsonb_build_object(
    'number', r.request_number, 'heading', 'We have your request',
    'paragraphs', jsonb_build_array('Hello ' || r.first_name || ',',
      'Your request for ' || r.category || ' went to ' || (select string_agg(n.name, ', ' order by array_position(r.nonprofits, n.id)) from public.nonprofits n where n.id = any (r.nonprofits)) || '.',
      'Most people hear back in 5 to 7 days. The first nonprofit that acts takes your request, and we write to you at each step.'),
    'button', 'See your request', 'link', private.request_link(r),
    'after', 'Keep the number. With it you can look up the status without signing in.',
    'why', 'You get this mail because request ' || r.request_number || ' was sent with this address.'));
  return private.submit_answer(r, false);
end $$;

-- ------------------------------------------------------------------------------------------------ public look-up

-- Status, dates and decision of a request by its number; nothing that identifies a person, no free text.
create function public.request_status(number text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare n text := upper(private.clean(request_status.number)); r public.requests;
begin
  if coalesce(length(n), 0) < 3 then
    perform private.fail(422, 'validation_failed', 'Request ID is required', '{"fields": {"number": "Request ID is required"}}');
  end if;
  perform private.require_rate('look-up:' || private.client_address(), 30, interval '1 minute');
  if n ~ '^[0-9]{3,}$' then n := 'REQ-' || n; end if;
  select * into r from public.requests x where x.request_number = n and x.status <> 'draft';
  if not found then return '{"found": false}'; end if;
  return jsonb_build_object('found', true, 'request_number', r.request_number,
    'status', case when r.status = 'pending' and r.review_started_at is not null and not r.needs_more_proof then 'in_review' else r.status end,
    'submitted_at', r.submitted_at, 'review_started_at', r.review_started_at, 'decided_at', r.decided_at,
    'awarded', case when r.status = 'approved' then r.amount_approved end,
    'reason_code', case when r.status = 'declined' then r.denial_reason_code end,
    'reason', case when r.status = 'declined' then (select d.label from public.denial_reasons d where d.code = r.denial_reason_code) end);
end $$;
