-- A person without an account opens their request with its number and a code mailed to the address that it names: they see it, answer,
-- add papers, correct their contact data and withdraw it, on any device. And staff read a request without writing.

-- --------------------------------------------------------------------------------------------------- number and code

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
comment on column private.request_codes.asker is 'The network that asked; only the same may try the code or end it (see 0023).';

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

-- 'req-7 ' and '7' are 'REQ-007' as people say it.
create function private.number_of(p text) returns text
language sql immutable set search_path = '' as $$
  select case when c ~ '^[0-9]+$' then 'REQ-' || lpad(c, greatest(3, length(c)), '0') else c end from (select upper(regexp_replace(coalesce(p, ''), '\s', '', 'g'))) x (c)
$$;

-- Mails a code to the address of a request. Says the same whether or not there is such a request.
create function public.send_request_code(number text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests; network text := private.client_network(); code text := private.new_code();
begin
  if length(private.number_of(send_request_code.number)) < 3 then
    perform private.fail_fields('Request ID is required', '{"number": "Request ID is required"}');
  end if;
  perform private.require_rate('request-code-caller:' || network, 15, interval '1 hour');
  perform private.require_rate('request-code-pair:' || network || ':' || private.number_of(send_request_code.number), 5, interval '1 hour');
  select * into r from public.requests x where x.request_number = private.number_of(send_request_code.number) and x.status <> 'draft';
  -- the limit of the address is silent: its refusal would tell that the request is there
  if r.id is not null and private.take('request-code-for:' || lower(r.email), 10, interval '1 day') then
    update private.request_codes c set expires_at = now() where c.request_id = r.id and c.asker = network and c.used_at is null and c.expires_at > now();
    insert into private.request_codes (request_id, asker, code_hash) values (r.id, network, private.hash_token(r.id || ':' || code));
    perform private.mail(r.email, code || ' opens ' || r.request_number, jsonb_build_object(
      'kicker', 'Your code', 'number', code, 'heading', 'Type this code on the page you came from',
      'paragraphs', jsonb_build_array('It opens your request ' || r.request_number || ' and is good for 15 minutes. If you did not ask for it, you need not do anything.'),
      'why', 'You get this mail because someone typed the number of your request on AidBridge.'));
  end if;
  return '{"sent": true}';
end $$;

-- Checks a mailed code. A wrong code is an answer and not an error, so that the tries are counted.
create function public.check_request_code(number text, code text) returns jsonb
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
  insert into private.request_access (token_hash, request_id) values (private.hash_token(token), r.id) returning * into a;
  return jsonb_build_object('ok', true, 'access', token, 'upload_key', a.upload_key, 'expires_at', a.expires_at, 'id', r.id, 'request_number', r.request_number);
end $$;

-- Ends this device's way into the request.
create function public.end_request_access(access text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from private.request_access a where a.token_hash = private.hash_token(end_request_access.access);
  return found;
end $$;

-- The request that the caller may call theirs: by account, or by the code that was mailed; null when it is neither.
create function private.own_request(p_id text, p_access text) returns public.requests
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

-- The same, locked; or 404.
create function private.require_own_request(p_id text, p_access text) returns public.requests
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests := private.own_request(p_id, p_access);
begin
  if r.id is null then perform private.fail_request_not_found(); end if;
  if p_access is not null then perform private.require_rate('by-code:' || r.id, 60, interval '1 hour'); end if;
  select * into r from public.requests x where x.id = r.id for update;
  return r;
end $$;

-- ------------------------------------------------------------------------------------------- what a person does with it

drop function public.request_detail(text);
create function public.request_detail(id text, access text default null) returns jsonb
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

drop function public.withdraw_request(text);
create function public.withdraw_request(id text, access text default null) returns jsonb
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
      perform private.notify_staff(p.nonprofit_id, 'info', r.request_number || ' was withdrawn', 'The person took this request back. There is nothing to do.', '/nonprofit-request/' || r.id, r.id);
    end if;
  end loop;
  insert into public.request_events (request_id, type, actor, actor_user_id) values (r.id, 'withdrawn', 'requester', auth.uid());
  perform private.notify(r.user_id, 'info', 'Request Withdrawn', 'You took back ' || r.request_number || '. You can send it again as a new draft.', '/request/' || r.id, r.id);
  return '{"status": "withdrawn"}';
end $$;

drop function public.answer_request_info(text, text);
create function public.answer_request_info(id text, message text default null, access text default null, slots jsonb default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests := private.require_own_request(answer_request_info.id, answer_request_info.access);
  note text := private.clean(answer_request_info.message);
  added int; asked timestamptz;
begin
  -- a guest's papers: from the slots of this way in, each once, at most ten while one question stands
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
    if (select count(*) from public.request_documents d where d.request_id = r.id and d.kind = 'additional') > 10 then
      perform private.fail(422, 'too_many_files', 'You can only upload a maximum of 10 files.', '{"max": 10}');
    end if;
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
  perform private.notify(r.user_id, 'info', 'Documents uploaded successfully', case when added > 0 then added || ' document(s) have been uploaded.' else 'Your answer was sent.' end, '/request/' || r.id, r.id);
  perform private.notify_staff(r.claimed_by, 'update', r.request_number || ' was answered',
    case when added > 0 then added || ' new document(s). ' else '' end || 'You can decide now.', '/nonprofit-request/' || r.id, r.id);
  return jsonb_build_object('status', 'pending', 'documents', added, 'repeated', false);
end $$;

-- Another phone number or address than the one that was sent. The mail address stays: it is what opens the request.
alter table public.request_events drop constraint request_events_type, add constraint request_events_type check (type in ('submitted', 'opened', 'info_requested', 'info_answered',
    'documents_added', 'first_approval', 'approved', 'denied', 'declined', 'released', 'withdrawn', 'claimed_by_account', 'paid', 'corrected'));
create function public.correct_request(id text, input jsonb, access text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests := private.require_own_request(correct_request.id, correct_request.access);
  fields constant text[] := array['first_name', 'last_name', 'phone', 'address', 'city', 'state', 'postal_code'];
  given jsonb; errors jsonb; p record;
begin
  if r.status not in ('pending', 'processing') then perform private.fail_decided(r, null); end if;
  select jsonb_object_agg(k, v) into given from jsonb_each(coalesce(correct_request.input, '{}')) t (k, v) where k = any (fields) and to_jsonb(r) -> k is distinct from v;
  if given is null then return '{"corrected": false}'; end if;
  r := private.apply_answers(r, given);
  select jsonb_object_agg(k, v) into errors from jsonb_each(private.submission_errors(r)) t (k, v) where k = any (fields);
  perform private.fail_fields('Please check the marked fields.', coalesce(errors, '{}'));
  perform private.write_answers(r);
  insert into public.request_events (request_id, type, actor, actor_user_id) values (r.id, 'corrected', 'requester', auth.uid());
  for p in select x.nonprofit_id from public.request_nonprofits x where x.request_id = r.id and x.state in ('open', 'claimed') and x.opened_at is not null loop
    perform private.notify_staff(p.nonprofit_id, 'update', r.request_number || ' was corrected', 'The person changed their contact data.', '/nonprofit-request/' || r.id, r.id);
  end loop;
  return '{"corrected": true}';
end $$;

create or replace function public.create_guest_upload_slot(key uuid, name text, mime_type text, size_bytes bigint) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  who text := private.client_address();
  file text := left(private.clean(create_guest_upload_slot.name), 255);
  new_id uuid := gen_random_uuid();
  ext text;
  s private.guest_upload_slots;
  -- 5 with a request, 10 with an answer that a mailed code opened the way for
  most int := case when exists (select 1 from private.request_access a where a.upload_key = create_guest_upload_slot.key and a.expires_at > now()) then 10 else 5 end;
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
  if (select count(*) from private.guest_upload_slots x where x.submit_key = create_guest_upload_slot.key) >= most then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of ' || most || ' files.', jsonb_build_object('max', most));
  end if;
  insert into private.guest_upload_slots (id, submit_key, path, name, mime_type, size_bytes, address)
  values (new_id, create_guest_upload_slot.key, 'guest/' || private.new_token() || '.' || ext, file, create_guest_upload_slot.mime_type,
    create_guest_upload_slot.size_bytes, who)
  returning * into s;
  return jsonb_build_object('id', s.id, 'bucket', 'request-documents', 'path', s.path, 'expires_at', s.expires_at);
end $$;

-- A guest's mails lead to where the code is asked for.
create or replace function private.request_link(r public.requests) returns text
language sql stable security definer set search_path = '' as $$
  select private.site_link(case when r.user_id is not null then '/request/' || r.id else '/open-request?number=' || r.request_number end)
$$;

create or replace function public.request_status(number text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare n text := upper(private.clean(request_status.number)); r public.requests;
begin
  if coalesce(length(n), 0) < 3 then
    perform private.fail(422, 'validation_failed', 'Request ID is required', '{"fields": {"number": "Request ID is required"}}');
  end if;
  perform private.require_rate('look-up:' || private.client_address(), 30, interval '1 minute');
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

-- --------------------------------------------------------------------------------------------------------- staff

-- A request as its staff may read it. Writes nothing and waits for nobody.
create function private.read_request(request_id text, nonprofit_id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  b record; r public.requests; part public.request_nonprofits; m public.nonprofit_team_members; f private.first_approvals;
  decides boolean; limit_above numeric; seen text;
begin
  m := private.require_member(read_request.nonprofit_id, array['admin', 'manager', 'employee']);
  select * into r from public.requests x where x.id = private.request_id_of(read_request.request_id) and x.status <> 'draft';
  if not found then perform private.fail_request_not_found(); end if;
  select * into part from public.request_nonprofits x where x.request_id = r.id and x.nonprofit_id = read_request.nonprofit_id;
  if not found then perform private.fail_request_not_found(); end if;
  seen := private.status_for_part(part.state, r.status);
  if not private.staff_may_see(r.id) then
    return jsonb_build_object('visible', false, 'request', jsonb_build_object('id', r.id, 'request_number', r.request_number, 'category', r.category,
      'amount', r.amount, 'status', seen, 'submitted_at', r.submitted_at), 'part', part.state, 'claimed_by_other', part.state = 'taken',
      'decided_message', case seen when 'taken' then 'Another nonprofit has taken this request.' else 'This request has already been ' || seen || '.' end);
  end if;
  decides := m.role in ('admin', 'manager');
  select s.second_approval_above into limit_above from public.nonprofit_settings s where s.nonprofit_id = part.nonprofit_id;
  if part.state = 'claimed' then
    select * into f from private.first_approvals x where x.request_id = r.id;
  end if;
  return jsonb_build_object(
    'visible', true,
    'request', (to_jsonb(r) - array['submit_key', 'user_id', 'resubmitted_from']) || jsonb_build_object('status', seen, 'has_account', r.user_id is not null,
      'amount_approved', coalesce(r.amount_approved, f.amount), 'first_approved_by', f.approved_by, 'first_approved_at', f.approved_at,
      'photo_path', (select p.photo_path from public.profiles p where p.id = r.user_id),
      'denial_reason', coalesce(part.reason, r.denial_reason), 'denial_reason_code', coalesce(part.reason_code, r.denial_reason_code)),
    'documents', private.documents_of(r.id),
    'timeline', coalesce((select jsonb_agg(jsonb_build_object('type', e.type, 'actor', e.actor, 'nonprofit_id', e.nonprofit_id, 'nonprofit_name', n.name,
        'staff_name', case when e.nonprofit_id = part.nonprofit_id then (select coalesce(nullif(t.full_name, ''), t.email) from public.nonprofit_team_members t
          where t.nonprofit_id = part.nonprofit_id and t.user_id = e.actor_user_id::text) end,
        'note', case when e.actor <> 'nonprofit' or e.nonprofit_id = part.nonprofit_id then e.note end,
        'amount', e.amount, 'created_at', e.created_at) order by e.created_at, e.id)
      from public.request_events e left join public.nonprofits n on n.id = e.nonprofit_id
      where e.request_id = r.id and (e.for_requester or e.nonprofit_id = part.nonprofit_id)), '[]'::jsonb),
    'part', part.state, 'opened', part.opened_at is not null,
    'also_sent_to', coalesce((select jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name, 'state', p.state) order by n.name)
      from public.request_nonprofits p join public.nonprofits n on n.id = p.nonprofit_id
      where p.request_id = r.id and p.nonprofit_id <> part.nonprofit_id), '[]'::jsonb),
    'claimed_by_other', false,
    'decided_message', case when seen <> 'pending' then 'This request has already been ' || seen || '.' end,
    'budget_remaining', case when decides then private.budget_remaining(part.nonprofit_id) end,
    'second_approval_above', limit_above,
    'first_approver', (select coalesce(nullif(t.full_name, ''), t.email) from public.nonprofit_team_members t
      where t.nonprofit_id = part.nonprofit_id and t.user_id = f.approved_by::text),
    'paid', (select coalesce(sum(t.amount), 0) from public.budget_transactions t where t.request_id = r.id and t.type = 'Payout'),
    'history_count', (select count(*) from public.requests o join public.request_nonprofits p on p.request_id = o.id and p.nonprofit_id = part.nonprofit_id
      where o.id <> r.id and o.status <> 'draft' and lower(o.email) = lower(r.email)),
    'can', jsonb_build_object(
      'approve', decides and part.state in ('open', 'claimed') and r.status = 'pending',
      'deny', decides and part.state in ('open', 'claimed') and r.status in ('pending', 'processing'),
      'ask_info', decides and part.state in ('open', 'claimed') and r.status = 'pending',
      'second_approval', decides and part.state = 'claimed' and r.status = 'processing' and f.approved_by is distinct from auth.uid()));
end $$;

create function public.staff_request(request_id text, nonprofit_id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  opened jsonb := private.read_request(staff_request.request_id, staff_request.nonprofit_id);
  own boolean;
begin
  select private.is_own_request(x, auth.uid()) into own from public.requests x where x.id = opened #>> '{request,id}';
  if own and opened ? 'can' then
    opened := jsonb_set(opened, '{can}', (select jsonb_object_agg(k, false) from jsonb_object_keys(opened -> 'can') k));
  end if;
  return opened || jsonb_build_object('own', own);
end $$;

-- The first member of staff to read a request marks it as opened, for the person to see. Answers whether this was the first.
create function public.mark_request_opened(request_id text, nonprofit_id text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests; part public.request_nonprofits;
begin
  perform private.require_member(mark_request_opened.nonprofit_id, array['admin', 'manager', 'employee']);
  select * into r from public.requests x where x.id = private.request_id_of(mark_request_opened.request_id) and x.status <> 'draft' for update;
  if not found then perform private.fail_request_not_found(); end if;
  select * into part from public.request_nonprofits x where x.request_id = r.id and x.nonprofit_id = mark_request_opened.nonprofit_id for update;
  if not found then perform private.fail_request_not_found(); end if;
  if part.opened_at is not null or part.state not in ('open', 'claimed') or r.status <> 'pending' then return false; end if;
  update public.request_nonprofits x set opened_at = now(), opened_by = auth.uid() where x.request_id = r.id and x.nonprofit_id = part.nonprofit_id;
  update public.requests x set review_started_at = coalesce(x.review_started_at, now()) where x.id = r.id;
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id) values (r.id, 'opened', 'nonprofit', part.nonprofit_id, auth.uid());
  return true;
end $$;

create or replace function public.open_request(request_id text, nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform public.mark_request_opened(open_request.request_id, open_request.nonprofit_id);
  return public.staff_request(open_request.request_id, open_request.nonprofit_id);
end $$;
drop function private.open_request(text, text);

-- Saves what changed of an organization's settings, all or nothing. `seen`: what the page showed of these fields; where a colleague has
-- changed one meanwhile, nothing is saved and 409 `changed_meanwhile` says which.
create function public.save_organization(nonprofit_id text, changes jsonb, seen jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := save_organization.nonprofit_id; org public.nonprofits; now_ jsonb; other text[]; above text := save_organization.changes ->> 'second_approval_above';
  fields constant text[] := array['name', 'legal_status', 'registration_number', 'employee_count', 'mission', 'description', 'email', 'phone', 'website', 'location',
    'average_response_time_days', 'second_approval_above'];
begin
  perform private.require_member(np, array['admin']);
  select * into org from public.nonprofits x where x.id = np for update;
  now_ := to_jsonb(org) || jsonb_build_object('second_approval_above', (select s.second_approval_above from public.nonprofit_settings s where s.nonprofit_id = np));
  select array_agg(k order by k) into other from jsonb_object_keys(save_organization.changes) k
  where k = any (fields) and now_ -> k is distinct from save_organization.seen -> k and now_ -> k is distinct from save_organization.changes -> k;
  if other is not null then
    perform private.fail(409, 'changed_meanwhile', 'A colleague changed the same settings meanwhile. Nothing was saved. Look at their version, then save yours again.',
      jsonb_build_object('changed', to_jsonb(other)));
  end if;
  org := jsonb_populate_record(org, (select coalesce(jsonb_object_agg(k, v), '{}') from jsonb_each(save_organization.changes) t (k, v) where k = any (fields)));
  update public.nonprofits x set name = private.clean(org.name), legal_status = org.legal_status, registration_number = org.registration_number, employee_count = org.employee_count,
    mission = org.mission, description = org.description, email = org.email, phone = org.phone, website = org.website, location = org.location,
    average_response_time_days = org.average_response_time_days
  where x.id = np;
  if save_organization.changes ? 'second_approval_above' then perform public.set_second_approval(np, above::numeric); end if;
  return '{"saved": true}';
end $$;

create or replace function private.sweep() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from private.rate_limits x using (select r.key, r.window_start from private.rate_limits r
    where r.window_start < now() - interval '2 days' for update skip locked) old where (x.key, x.window_start) = (old.key, old.window_start);
  delete from private.address_codes x using (select c.id from private.address_codes c
    where c.expires_at < now() - interval '2 days' for update skip locked) old where x.id = old.id;
  delete from private.address_proofs x using (select p.token_hash from private.address_proofs p
    where p.expires_at < now() for update skip locked) old where x.token_hash = old.token_hash;
  delete from private.sent_contents c where c.sent_at < now() - interval '90 days';
  delete from private.request_codes c where c.expires_at < now() - interval '2 days';
  delete from private.request_access a where a.expires_at < now();
  perform private.add_up_tally();
end $$;

revoke all on function private.number_of(text), private.own_request(text, text), private.require_own_request(text, text), private.read_request(text, text),
  public.send_request_code(text), public.check_request_code(text, text), public.end_request_access(text), public.request_detail(text, text),
  public.withdraw_request(text, text), public.answer_request_info(text, text, text, jsonb), public.correct_request(text, jsonb, text),
  public.staff_request(text, text), public.mark_request_opened(text, text), public.save_organization(text, jsonb, jsonb) from public, anon, authenticated, service_role;
grant execute on function public.send_request_code(text), public.check_request_code(text, text), public.end_request_access(text), public.request_detail(text, text),
  public.withdraw_request(text, text), public.answer_request_info(text, text, text, jsonb), public.correct_request(text, jsonb, text) to anon, authenticated, service_role;
grant execute on function public.staff_request(text, text), public.mark_request_opened(text, text), public.save_organization(text, jsonb, jsonb) to authenticated, service_role;

notify pgrst, 'reload schema';
