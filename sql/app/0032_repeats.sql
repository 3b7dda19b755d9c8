-- An answer that got lost on its way makes people press again. A payout, a donor's answer, a first save and an answer to a question
-- are then still one: the client's key, or the words themselves, say that it is the same.

alter table public.budget_transactions add column payout_key uuid constraint budget_transactions_payout_key_once unique;
alter table public.donor_message_replies add column reply_key uuid constraint donor_message_replies_key_once unique;

drop function public.record_payout(text, numeric, text);
create function public.record_payout(request_id text, amount numeric, note text default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests; paid numeric; a numeric := record_payout.amount;
begin
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(record_payout.request_id)
    and x.claimed_by in (select private.my_staff_organizations()) for update;
  if not found then perform private.fail_request_not_found(); end if;
  perform private.require_member(r.claimed_by, array['admin', 'manager']);
  if r.status <> 'approved' then
    perform private.fail(409, 'not_approved', 'Only an approved request can be paid.', jsonb_build_object('status', r.status));
  end if;
  select coalesce(sum(t.amount), 0) into paid from public.budget_transactions t where t.request_id = r.id and t.type = 'Payout';
  if exists (select 1 from public.budget_transactions t where t.request_id = r.id and t.payout_key = record_payout.key) then
    return jsonb_build_object('granted', r.amount_approved, 'paid', paid, 'outstanding', r.amount_approved - paid, 'repeated', true);
  end if;
  perform private.require_amount(a);
  if paid + a > r.amount_approved then
    perform private.fail(409, 'payout_exceeds_grant', 'Of this grant ' || private.amount_text(r.amount_approved - paid) || ' is left to pay.',
      jsonb_build_object('outstanding', r.amount_approved - paid));
  end if;
  insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, note, created_by, payout_key)
  values (r.claimed_by, 'Payout', a, r.category, r.id, r.request_number, left(private.clean(record_payout.note), 1000), auth.uid(), record_payout.key);
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, amount) values (r.id, 'paid', 'nonprofit', r.claimed_by, auth.uid(), a);
  perform private.notify(r.user_id, 'success', 'Payment recorded', private.amount_text(a) || ' for ' || r.request_number || ' is on its way.', '/request/' || r.id, r.id);
  return jsonb_build_object('granted', r.amount_approved, 'paid', paid + a, 'outstanding', r.amount_approved - paid - a, 'repeated', false);
end $$;

drop function public.reply_to_donor_message(text, text);
create function public.reply_to_donor_message(message_id text, message text, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare uid uuid := private.require_user(); m public.donor_messages; b text := private.clean(reply_to_donor_message.message); who text; new_id text;
begin
  select x.* into m from public.donor_messages x join public.donor_message_recipients r on r.message_id = x.id and r.donor_user_id = uid
  where x.id = reply_to_donor_message.message_id;
  if not found then perform private.fail(404, 'message_not_found', 'This message could not be found.'); end if;
  if b is null or length(b) > 10000 then
    perform private.fail(422, 'validation_failed', 'Please write an answer.', '{"fields": {"message": "Please write an answer (at most 10000 characters)."}}');
  end if;
  if reply_to_donor_message.key is not null then
    perform pg_advisory_xact_lock(hashtextextended('reply:' || reply_to_donor_message.key, 0));
    select y.id into new_id from public.donor_message_replies y where y.reply_key = reply_to_donor_message.key and y.donor_user_id = uid;
    if found then return jsonb_build_object('id', new_id, 'repeated', true); end if;
  end if;
  perform private.require_rate('reply:' || uid, 30, interval '1 hour');
  select coalesce(nullif(p.full_name, ''), p.email, 'A donor') into who from public.profiles p where p.id = uid;
  insert into public.donor_message_replies (message_id, nonprofit_id, donor_user_id, from_name, subject, message, reply_key)
  values (m.id, m.nonprofit_id, uid, left(who, 200), 'Re: ' || m.subject, b, reply_to_donor_message.key) returning id into new_id;
  update public.donor_message_recipients r set read_at = coalesce(r.read_at, now()) where r.message_id = m.id and r.donor_user_id = uid;
  perform private.notify_staff(m.nonprofit_id, 'info', 'A donor answered', who || ': Re: ' || m.subject, '/nonprofit-donor-communication?tab=inbox', null, array['admin', 'manager']);
  return jsonb_build_object('id', new_id, 'repeated', false);
end $$;

-- A first save without an id makes the draft that its key names: the same key of the same person, the same draft.
create or replace function public.save_draft(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := private.require_user(); r public.requests;
  draft text := private.clean(input ->> 'id');
  named boolean := false;
begin
  if draft is null and input ->> 'key' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    draft := md5('draft:' || uid || ':' || (input ->> 'key'))::uuid::text;
    perform pg_advisory_xact_lock(hashtextextended('draft:' || draft, 0));
    named := not exists (select 1 from public.requests x where x.id = draft);
  end if;
  if draft is not null and not named then
    r := private.require_draft(draft);
  else
    if (select count(*) from public.requests x where x.user_id = uid and x.status = 'draft') >= 50 then
      perform private.fail(409, 'too_many_drafts', 'You have 50 saved drafts. Please delete one first.');
    end if;
    insert into public.requests (id, user_id) values (coalesce(draft, gen_random_uuid()::text), uid) returning * into r;
  end if;
  perform private.write_answers(private.apply_answers(r, input));
  return (select jsonb_build_object('id', x.id, 'updated_at', x.updated_at) from public.requests x where x.id = r.id);
end $$;

-- The answer to 'needs more proof': a message, the documents added since the question, or both. The same words again are the same answer.
create or replace function public.answer_request_info(id text, message text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests := private.require_own_request(answer_request_info.id);
  note text := private.clean(answer_request_info.message);
  added int; asked timestamptz;
begin
  select max(e.created_at) into asked from public.request_events e where e.request_id = r.id and e.type = 'info_requested';
  select count(*) into added from public.request_documents d where d.request_id = r.id and d.kind = 'additional' and d.created_at > coalesce(asked, r.submitted_at);
  if r.status <> 'pending' or not r.needs_more_proof then
    if r.status = 'pending' and exists (select 1 from public.request_events e where e.request_id = r.id and e.type = 'info_answered'
      and e.created_at > asked and e.actor_user_id = auth.uid() and e.note is not distinct from private.clean(answer_request_info.message)) then
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

revoke all on function public.record_payout(text, numeric, text, uuid), public.reply_to_donor_message(text, text, uuid) from public, anon, authenticated, service_role;
grant execute on function public.record_payout(text, numeric, text, uuid), public.reply_to_donor_message(text, text, uuid) to authenticated, service_role;

notify pgrst, 'reload schema';
