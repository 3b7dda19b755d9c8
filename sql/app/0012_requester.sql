-- The person's side of a sent request: list, detail, withdraw, send again, answer a question, dashboard.

-- The caller's sent requests, ready to list. Runs under the caller's policies.
create view public.my_requests with (security_invoker = true) as
  select r.id, r.request_number, r.title, r.description, r.category, r.category_id, r.amount, r.amount_requested, r.amount_approved,
    r.status, r.needs_more_proof, r.pending_notes, r.denial_reason, r.nonprofits,
    array(select n.name from public.request_nonprofits p join public.nonprofits n on n.id = p.nonprofit_id
          where p.request_id = r.id order by array_position(r.nonprofits, n.id)) as nonprofit_names,
    (select n.name from public.nonprofits n where n.id = r.claimed_by) as claimed_by_name,
    r.submitted_at, r.decided_at, r.updated_at,
    lower(concat_ws(' ', r.request_number, r.category, r.title, r.description)) as search_text
  from public.requests r
  where r.user_id = (select auth.uid()) and r.status <> 'draft';

create function private.documents_of(p_request_id text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name, 'path', d.path, 'mime_type', d.mime_type,
    'size_bytes', d.size_bytes, 'kind', d.kind, 'created_at', d.created_at) order by d.created_at, d.id), '[]'::jsonb)
  from public.request_documents d where d.request_id = p_request_id
$$;

create function public.request_detail(id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests;
begin
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(request_detail.id) and x.user_id = auth.uid();
  if not found then
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
        'average_response_time_days', n.average_response_time_days, 'logo_path', n.logo_path, 'state', p.state)
        order by array_position(r.nonprofits, n.id))
      from public.nonprofits n left join public.request_nonprofits p on p.nonprofit_id = n.id and p.request_id = r.id
      where n.id = any (r.nonprofits)), '[]'::jsonb),
    'can', jsonb_build_object('cancel', r.status in ('pending', 'processing'), 'add_documents', r.status = 'pending' and r.needs_more_proof,
      'resubmit', r.status in ('withdrawn', 'declined'), 'edit', r.status = 'draft'));
end $$;

-- The caller's request, locked, by id or number; or 404.
create function private.require_own_request(p_id text) returns public.requests
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests;
begin
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(p_id) and x.user_id = auth.uid() for update;
  if not found then perform private.fail_request_not_found(); end if;
  return r;
end $$;

create function public.withdraw_request(id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests := private.require_own_request(withdraw_request.id); p record;
begin
  if r.status not in ('pending', 'processing') then perform private.fail_decided(r, null); end if;
  update public.requests x set status = 'withdrawn', needs_more_proof = false, amount_approved = null,
    first_approved_by = null, first_approved_at = null, decided_at = now()
  where x.id = r.id;
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

-- A new draft with the answers and documents of a withdrawn or declined request.
create function public.resubmit_request(id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests := private.require_own_request(resubmit_request.id); d text;
begin
  if r.status not in ('withdrawn', 'declined') then
    perform private.fail(409, 'not_resubmittable', 'Only a withdrawn or declined request can be sent again.', jsonb_build_object('status', r.status));
  end if;
  select x.id into d from public.requests x where x.resubmitted_from = r.id and x.status = 'draft' and x.user_id = r.user_id limit 1;
  if d is not null then return jsonb_build_object('draft_id', d); end if;
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

-- The answer to 'needs more proof': a message, the documents added since the question, or both.
create function public.answer_request_info(id text, message text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests := private.require_own_request(answer_request_info.id);
  note text := private.clean(answer_request_info.message);
  added int; asked timestamptz;
begin
  if r.status <> 'pending' or not r.needs_more_proof then perform private.fail_decided(r, null); end if;
  select max(e.created_at) into asked from public.request_events e where e.request_id = r.id and e.type = 'info_requested';
  select count(*) into added from public.request_documents d where d.request_id = r.id and d.kind = 'additional' and d.created_at > coalesce(asked, r.submitted_at);
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
  return jsonb_build_object('status', 'pending', 'documents', added);
end $$;

create function public.requester_dashboard() returns jsonb
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
