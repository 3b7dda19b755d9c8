-- What staff do with a request: open it, ask for more, approve, deny. Staff cannot decide on their own requests.

-- ----------------------------------------------------------------------------------------------------- deciding rights

-- The request is the account's own, or a guest's from the account's address.
create or replace function private.is_own_request(r public.requests, p_user uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select p_user is not null and (r.user_id is not distinct from p_user
    or exists (select 1 from auth.users u where u.id = p_user and lower(u.email) = lower(r.email)))
$$;

create or replace function private.refuse_own_request(r public.requests, p_user uuid) returns void
language plpgsql stable security definer set search_path = '' as $$
begin
  if private.is_own_request(r, p_user) then
    perform private.fail(403, 'own_request', 'This is your own request. A colleague has to decide on it.');
  end if;
end $$;

-- Checks the caller's role, then locks organization, request and part, always in this order. If employees may not do it, it
-- is a decision, which nobody may make on their own request.
create or replace function private.begin_decision(p_request_id text, p_nonprofit_id text, p_roles text[], out r public.requests, out part public.request_nonprofits, out member public.nonprofit_team_members)
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform private.keep_open(p_nonprofit_id);
  member := private.require_member(p_nonprofit_id, p_roles);
  select * into r from public.requests x where x.id = private.request_id_of(p_request_id) and x.status <> 'draft' for update;
  if not found then perform private.fail_request_not_found(); end if;
  select * into part from public.request_nonprofits x where x.request_id = r.id and x.nonprofit_id = p_nonprofit_id for update;
  if not found or (part.state = 'withdrawn' and part.opened_at is null) then perform private.fail_request_not_found(); end if;
  if 'employee' <> all (p_roles) then perform private.refuse_own_request(r, auth.uid()); end if;
end $$;

-- The organization claims the request: its part becomes claimed, the other open parts taken.
create or replace function private.claim(r public.requests, p_nonprofit_id text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare other text;
begin
  for other in update public.request_nonprofits x set state = 'taken'
    where x.request_id = r.id and x.nonprofit_id <> p_nonprofit_id and x.state = 'open' returning x.nonprofit_id
  loop
    perform private.notify_staff(other, 'info', 'taken', jsonb_build_object('number', r.request_number), '/nonprofit-requests', r.id);
  end loop;
  update public.request_nonprofits x set state = 'claimed', acted_at = now(), acted_by = auth.uid(), opened_at = coalesce(x.opened_at, now()),
    opened_by = coalesce(x.opened_by, auth.uid())
  where x.request_id = r.id and x.nonprofit_id = p_nonprofit_id;
end $$;

-- Ends one organization's part. Returns the number of parts still open; 0 means that the request is now declined.
create or replace function private.end_part(p_request public.requests, p_part public.request_nonprofits, p_state text, p_reason text, p_reason_code text) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare r public.requests := p_request; org text; still int; other text;
begin
  select n.name into org from public.nonprofits n where n.id = p_part.nonprofit_id;
  delete from private.first_approvals f where f.request_id = r.id;
  update public.request_nonprofits x set state = p_state, reason = p_reason, reason_code = p_reason_code, acted_at = now(), acted_by = auth.uid(),
    opened_at = coalesce(x.opened_at, now())
  where x.request_id = r.id and x.nonprofit_id = p_part.nonprofit_id;
  if p_part.state = 'claimed' then  -- the others may act again
    for other in update public.request_nonprofits x set state = 'open' where x.request_id = r.id and x.state = 'taken' returning x.nonprofit_id loop
      perform private.notify_staff(other, 'update', 'openAgain', jsonb_build_object('number', r.request_number), '/nonprofit-request/' || r.id, r.id);
    end loop;
  end if;
  select count(*) into still from public.request_nonprofits x where x.request_id = r.id and x.state in ('open', 'claimed');
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, note)
  values (r.id, case when p_state = 'closed' then 'released' else 'denied' end, 'nonprofit', p_part.nonprofit_id, auth.uid(), p_reason);
  if still > 0 then
    update public.requests x set claimed_by = case when p_part.state = 'claimed' then null else x.claimed_by end,
      status = case when p_part.state = 'claimed' then 'pending' else x.status end,
      needs_more_proof = case when p_part.state = 'claimed' then false else x.needs_more_proof end,
      pending_notes = case when p_part.state = 'claimed' then null else x.pending_notes end
    where x.id = r.id;
    perform private.notify(r.user_id, 'info', 'couldNotHelp',
      jsonb_build_object('nonprofit', org, 'number', r.request_number, 'count', still), '/request/' || r.id, r.id);
    perform private.mail_about(r, 'couldNotHelp', jsonb_build_object('nonprofit', org, 'count', still), jsonb_build_object('quote', p_reason));
  else
    update public.requests x set status = 'declined', denial_reason = p_reason, denial_reason_code = p_reason_code, needs_more_proof = false,
      decided_at = now(), review_started_at = coalesce(x.review_started_at, now())
    where x.id = r.id returning * into r;
    insert into public.request_events (request_id, type, actor, nonprofit_id) values (r.id, 'declined', 'system', p_part.nonprofit_id);
    perform private.notify(r.user_id, 'warning', 'declined', jsonb_build_object('nonprofit', org, 'number', r.request_number, 'reason', left(p_reason, 300)), '/request/' || r.id, r.id);
    perform private.mail_about(r, 'declined', jsonb_build_object('nonprofit', org), jsonb_build_object('quote', p_reason));
  end if;
  return still;
end $$;

-- --------------------------------------------------------------------------------------------------------------- texts

-- A request's status for one organization. Without SET, so that the planner inlines it.
create or replace function private.status_for_part(p_part text, p_status text) returns text
language sql immutable as $$
  select case p_part when 'taken' then 'taken' when 'denied' then 'declined' when 'withdrawn' then 'withdrawn' when 'closed' then 'declined' else p_status end
$$;

-- Mails the person about their request, in their language; p has what the texts of p_code lack. With consent, also
-- sends a text about decisions and questions. It says only that there is something to read and where, because others
-- may see the phone.
create or replace function private.mail_about(r public.requests, p_code text, p_params jsonb, p jsonb default '{}') returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  spoken text := private.language_of(r);
  params jsonb := jsonb_build_object('number', r.request_number, 'category', r.category, 'date', r.submitted_at::date,
    'hello', private.greeting(r.first_name, spoken)) || p_params;
begin
  perform private.mail_words(r.email, spoken, p_code, params, jsonb_build_object('number', r.request_number, 'link', private.request_link(r),
    'why', private.say(spoken, 'mail.whyRequest', params)) || p);
  if r.sms_consent and p_code in ('approved', 'declined', 'asked') then
    perform ferrobase.send_sms(private.sms_number(r.phone), private.say(spoken, case p_code when 'asked' then 'mail.sms.asked' else 'mail.sms.decided' end,
      jsonb_build_object('number', r.request_number, 'link', case when r.user_id is null then private.guest_link(r) else private.site_link('/request/' || r.request_number) end)));
  end if;
end $$;

-- ------------------------------------------------------------------------------------------------------------- reading

-- A request as its staff may read it. Does not write or lock.
create or replace function private.read_request(request_id text, nonprofit_id text) returns jsonb
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
      'amount', private.amount_text(r.amount_requested), 'status', seen, 'submitted_at', r.submitted_at), 'part', part.state, 'claimed_by_other', part.state = 'taken',
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
      'pending_notes', case when r.claimed_by = part.nonprofit_id then r.pending_notes end,  -- what another one asked is not told
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
      where o.id <> r.id and o.status <> 'draft' and lower(o.email) = lower(r.email) and not private.is_erased(r.email)),
    'can', jsonb_build_object(
      'approve', decides and part.state in ('open', 'claimed') and r.status = 'pending',
      'deny', decides and part.state in ('open', 'claimed') and r.status in ('pending', 'processing'),
      'ask_info', decides and part.state in ('open', 'claimed') and r.status = 'pending',
      'second_approval', decides and part.state = 'claimed' and r.status = 'processing' and f.approved_by is distinct from auth.uid()))
    || private.who_looks_after(part.nonprofit_id, part.assigned_to);
end $$;

create or replace function public.staff_request(request_id text, nonprofit_id text) returns jsonb
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

-- The first member of staff to read a request marks it as opened, which the person sees. Returns whether this was the
-- first.
create or replace function public.mark_request_opened(request_id text, nonprofit_id text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests; part public.request_nonprofits;
begin
  perform private.keep_open(mark_request_opened.nonprofit_id);
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

-- Opens a request for a member of staff. `own`: it is their own, so they can only read it and a colleague answers.
create or replace function public.open_request(request_id text, nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform public.mark_request_opened(open_request.request_id, open_request.nonprofit_id);
  return public.staff_request(open_request.request_id, open_request.nonprofit_id);
end $$;

-- ------------------------------------------------------------------------------------------------------------ deciding

create or replace function private.budget_remaining(p_nonprofit_id text) returns numeric
language sql stable security definer set search_path = '' as $$
  select t.donated - t.approved from private.budget_totals(p_nonprofit_id) t
$$;

create or replace function public.approve_request(request_id text, nonprofit_id text, amount numeric, accept_over_budget boolean default false) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  b record; r public.requests; part public.request_nonprofits; org text; f private.first_approvals;
  granted numeric; remaining numeric; limit_above numeric; second boolean;
begin
  select * into b from private.begin_decision(approve_request.request_id, approve_request.nonprofit_id, array['admin', 'manager']);
  r := b.r; part := b.part;
  second := r.status = 'processing' and part.state = 'claimed';
  if not second and not (r.status = 'pending' and part.state in ('open', 'claimed')) then
    perform private.fail_decided(r, part.nonprofit_id);
  end if;
  if second then
    select * into f from private.first_approvals x where x.request_id = r.id;
  end if;
  granted := private.require_amount(coalesce(approve_request.amount, f.amount));
  if second then
    if f.approved_by = auth.uid() then
      perform private.fail(409, 'second_approval_by_other', 'You gave the first approval. Another manager or admin must give the second.');
    end if;
    if granted <> f.amount then
      perform private.fail(409, 'amount_differs', 'The first approval was for ' || private.amount_text(f.amount) || '. Approve the same amount, or deny the request.', jsonb_build_object('amount', f.amount));
    end if;
  end if;
  -- one approval at a time per organization, so that two cannot both spend what remains
  select s.second_approval_above into limit_above from public.nonprofit_settings s where s.nonprofit_id = part.nonprofit_id for update;
  remaining := private.budget_remaining(part.nonprofit_id);
  if granted > remaining and not coalesce(approve_request.accept_over_budget, false) then
    perform private.fail(409, 'over_budget', 'This is more than the budget has left (' || case when remaining < 0 then '-' else '' end || private.amount_text(abs(remaining)) || ').', jsonb_build_object('remaining', remaining, 'amount', granted));
  end if;
  select n.name into org from public.nonprofits n where n.id = part.nonprofit_id;
  perform private.claim(r, part.nonprofit_id);

  if not second and granted > limit_above then
    update public.requests x set status = 'processing', claimed_by = part.nonprofit_id, needs_more_proof = false,
      review_started_at = coalesce(x.review_started_at, now())
    where x.id = r.id;
    insert into private.first_approvals (request_id, amount, approved_by) values (r.id, granted, auth.uid());
    insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, note, amount, for_requester)
    values (r.id, 'first_approval', 'nonprofit', part.nonprofit_id, auth.uid(), null, granted, false);
    perform private.notify(r.user_id, 'update', 'finalReview', jsonb_build_object('nonprofit', org, 'number', r.request_number), '/request/' || r.id, r.id);
    perform private.notify_staff(part.nonprofit_id, 'warning', 'secondApproval', jsonb_build_object('number', r.request_number, 'amount', granted),
      '/nonprofit-request/' || r.id, r.id, array['admin', 'manager'], auth.uid());
    return jsonb_build_object('status', 'processing', 'amount', private.amount_text(granted), 'second_approval_needed', true);
  end if;

  delete from private.first_approvals x where x.request_id = r.id;
  update public.requests x set status = 'approved', claimed_by = part.nonprofit_id, amount = private.amount_text(granted), amount_approved = granted,
    needs_more_proof = false, review_started_at = coalesce(x.review_started_at, now()), decided_at = now()
  where x.id = r.id returning * into r;
  insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, created_by)
  values (part.nonprofit_id, 'Approval', granted, r.category, r.id, r.request_number, auth.uid());
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, amount)
  values (r.id, 'approved', 'nonprofit', part.nonprofit_id, auth.uid(), granted);
  perform private.notify(r.user_id, 'success', 'approved', jsonb_build_object('nonprofit', org, 'number', r.request_number, 'amount', granted), '/request/' || r.id, r.id);
  perform private.mail_about(r, 'approved', jsonb_build_object('nonprofit', org, 'amount', granted));
  return jsonb_build_object('status', 'approved', 'amount', r.amount, 'second_approval_needed', false);
end $$;

create or replace function public.deny_request(request_id text, nonprofit_id text, reason text, reason_code text default 'other') returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  b record; r public.requests; part public.request_nonprofits; still int;
  why text := private.clean(deny_request.reason);
  why_code text := coalesce(private.clean(deny_request.reason_code), 'other');
begin
  select * into b from private.begin_decision(deny_request.request_id, deny_request.nonprofit_id, array['admin', 'manager']);
  r := b.r; part := b.part;
  if not (part.state in ('open', 'claimed') and (r.status = 'pending' or (r.status = 'processing' and part.state = 'claimed'))) then
    perform private.fail_decided(r, part.nonprofit_id);
  end if;
  if why is null or length(why) > 5000 then
    perform private.fail(422, 'validation_failed', 'Please give a reason.', '{"fields": {"reason": "Please give a reason (at most 5000 characters)."}}');
  end if;
  if why_code = 'organization_closed' or not exists (select 1 from public.denial_reasons d where d.code = why_code) then
    perform private.fail(422, 'validation_failed', 'Please choose a reason from the list.', '{"fields": {"reason_code": "Please choose a reason from the list."}}');
  end if;
  still := private.end_part(r, part, 'denied', why, why_code);
  return jsonb_build_object('status', case when still = 0 then 'declined' else 'pending' end, 'part', 'denied', 'others_open', still);
end $$;

-- Ticked items are written in the person's language, one line each, followed by the staff's own notes. The same question
-- again, while it waits for an answer, counts as the same one: nothing is written or sent.
create or replace function public.request_more_info(request_id text, nonprofit_id text, notes text default null, items text[] default '{}') returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  b record; r public.requests; part public.request_nonprofits; org text;
  own text := private.clean(request_more_info.notes);
  known constant text[] := array['identity', 'bill', 'rent', 'income', 'medical', 'school', 'offer', 'contact'];
  answer constant jsonb := '{"status": "pending", "needs_more_proof": true}';
  ask text;
begin
  select * into b from private.begin_decision(request_more_info.request_id, request_more_info.nonprofit_id, array['admin', 'manager']);
  r := b.r; part := b.part;
  if not (r.status = 'pending' and part.state in ('open', 'claimed')) then perform private.fail_decided(r, part.nonprofit_id); end if;
  if not request_more_info.items <@ known then
    perform private.fail(422, 'validation_failed', 'Please choose from the list.', '{"fields": {"items": "Please choose from the list."}}');
  end if;
  ask := nullif(concat_ws(E'\n\n',
    (select string_agg('– ' || private.say(private.language_of(r), 'mail.missing.' || k, '{}'), E'\n' order by i)
      from unnest(known) with ordinality t (k, i) where k = any (request_more_info.items)), own), '');
  if ask is null or length(ask) > 5000 then
    perform private.fail(422, 'validation_failed', 'Please write what is needed.', '{"fields": {"notes": "Please write what is needed (at most 5000 characters)."}}');
  end if;
  if part.state = 'claimed' and r.needs_more_proof and r.pending_notes = ask then return answer; end if;
  select n.name into org from public.nonprofits n where n.id = part.nonprofit_id;
  perform private.claim(r, part.nonprofit_id);
  update public.requests x set claimed_by = part.nonprofit_id, needs_more_proof = true, pending_notes = ask, review_started_at = coalesce(x.review_started_at, now())
  where x.id = r.id returning * into r;
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, note)
  values (r.id, 'info_requested', 'nonprofit', part.nonprofit_id, auth.uid(), ask);
  perform private.notify(r.user_id, 'warning', 'asked', jsonb_build_object('nonprofit', org, 'number', r.request_number, 'question', ask), '/request/' || r.id, r.id);
  perform private.mail_about(r, 'asked', jsonb_build_object('nonprofit', org), jsonb_build_object('quote', ask) || case when r.user_id is null
    then jsonb_build_object('after', private.say(private.language_of(r), 'mail.asked.afterGuest', '{}')) else '{}' end);
  return answer;
end $$;

create or replace function public.nonprofit_dashboard(nonprofit_id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := nonprofit_dashboard.nonprofit_id;
  m public.nonprofit_team_members := private.require_member(nonprofit_dashboard.nonprofit_id, array['admin', 'manager', 'employee', 'volunteer']);
  t record; managed boolean; works boolean; newest text[] := '{}';
begin
  managed := m.role in ('admin', 'manager'); works := m.role <> 'volunteer';
  if works then
    newest := private.incoming_ids(np, array['pending', 'processing', 'approved', 'declined', 'withdrawn', 'taken'], '', 'submitted_at', true, 0, 5);
  end if;
  select * into t from private.budget_totals(np);
  return jsonb_build_object(
    'organization', (select to_jsonb(n) from public.nonprofits n where n.id = np),
    'role', m.role, 'full_name', m.full_name,
    'counts', case when works then public.incoming_request_counts(np) end,
    'budget', jsonb_build_object('percent', case when t.allocated > 0 then round(100 * t.paid / t.allocated) else 0 end)
      || case when managed then jsonb_build_object('total', t.allocated, 'used', t.paid, 'remaining', t.allocated - t.paid,
        'by_category', coalesce((select jsonb_agg(jsonb_build_object('category', c, 'amount', a) order by a desc, c)
          from (select x.category as c, sum(x.change) as a from private.budget_tally x where x.nonprofit_id = np and x.type = 'Payout' group by 1) y), '[]'::jsonb))
      else '{}'::jsonb end,
    'longest_waiting', case when works then (select to_jsonb(i) || jsonb_build_object('also_sent_to', (select coalesce(jsonb_agg(n.name), '[]'::jsonb) from public.request_nonprofits o
          join public.nonprofits n on n.id = o.nonprofit_id where o.request_id = i.request_id and o.nonprofit_id <> np)) - 'search_text'
      from private.incoming_requests i where i.nonprofit_id = np and i.request_id = (
        select p.request_id from public.request_nonprofits p where p.nonprofit_id = np and p.status = 'pending' and not p.needs_more_proof
          -- not a colleague's; an array and not a join, so that the index by date ends at the first row
          and (p.assigned_to is null or p.assigned_to <> all (array(
            select c.id from private.staff_of(np) c where c.id <> m.id)))
        order by p.submitted_at limit 1)) end,
    'recent', private.incoming_rows(np, newest[:3]), 'requests', private.incoming_rows(np, newest),
    'categories', (with used as (
        select coalesce(lower(y.category), '') as c, sum(y.change)::bigint as n from private.incoming_tally y where y.nonprofit_id = np group by 1)
      select coalesce(jsonb_agg(jsonb_build_object('id', c.id, 'name', c.name, 'description', c.description, 'requests', coalesce(u.n, 0), 'is_active', c.is_active,
          'own', c.nonprofit_id is not null) order by c.nonprofit_id nulls last, c.name), '[]'::jsonb)
      from public.categories c left join used u on u.c = lower(c.name)
      where c.nonprofit_id = np or (c.nonprofit_id is null and u.n > 0
        and not exists (select 1 from public.categories o where o.nonprofit_id = np and lower(o.name) = lower(c.name)))),
    'team', case when managed then coalesce((select jsonb_agg(to_jsonb(x) order by x.created_at) from (
        select y.id, y.full_name, y.email, y.role, y.is_active, y.user_id, y.created_at from public.nonprofit_team_members y
        where y.nonprofit_id = np order by y.created_at limit 5) x), '[]'::jsonb) end);
end $$;
