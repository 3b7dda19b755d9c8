-- Columns that a reader of the row need not see: who of the staff did something, whose account a person has, what a first
-- approval grants before the second one. Staff read a request through open_request and incoming_requests alone.

-- A first approval that waits for the second. The owner of the request is not told its amount or its author.
create table private.first_approvals (
  request_id text primary key references public.requests (id) on delete cascade,
  amount numeric(12, 2) not null constraint first_approvals_amount check (amount > 0),
  approved_by uuid not null,
  approved_at timestamptz not null default now()
);
alter table private.first_approvals enable row level security;
revoke all on private.first_approvals from public, anon, authenticated, service_role;

insert into private.first_approvals (request_id, amount, approved_by, approved_at)
select r.id, r.amount_approved, r.first_approved_by, coalesce(r.first_approved_at, r.updated_at) from public.requests r where r.status = 'processing';
alter table public.requests
  drop constraint requests_processing_is_claimed,
  drop constraint requests_approved_has_amount,
  drop column first_approved_by,
  drop column first_approved_at;

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
    else
      new.id := old.id; new.user_id := old.user_id; new.created_at := old.created_at; new.resubmitted_from := old.resubmitted_from;
    end if;
    new.request_number := null; new.submit_key := null; new.submitted_at := null; new.review_started_at := null; new.decided_at := null; new.amount_approved := null;
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

-- The amount of a first approval is gone from the row by now, without a trace in updated_at.
alter table public.requests disable trigger guard;
update public.requests set amount_approved = null where status <> 'approved' and amount_approved is not null;
alter table public.requests enable trigger guard;
alter table public.requests
  add constraint requests_processing_is_claimed check (status <> 'processing' or claimed_by is not null),
  add constraint requests_approved_has_amount check ((status = 'approved') = (amount_approved is not null) and (status <> 'approved' or decided_at is not null));

create or replace view private.incoming_requests as
  select r.id as request_id, p.nonprofit_id, r.request_number, r.category, r.category_id, r.amount, r.amount_requested,
    case when r.claimed_by = p.nonprofit_id then coalesce(r.amount_approved, f.amount) end as amount_approved,
    private.status_for_part(p.state, r.status) as status, p.state as part,
    r.needs_more_proof and p.state = 'claimed' as needs_more_proof,
    p.opened_at is not null as opened, p.submitted_at, r.updated_at,
    case when p.state in ('open', 'claimed') and r.status in ('pending', 'processing')
         then floor(extract(epoch from now() - p.submitted_at) / 86400)::int end as waiting_days,
    v.name as requester_name,
    lower(concat_ws(' ', r.request_number, r.category, r.amount, v.name)) as search_text
  from public.request_nonprofits p
  join public.requests r on r.id = p.request_id
  left join private.first_approvals f on f.request_id = r.id
  cross join lateral (select case when p.state in ('open', 'claimed', 'withdrawn')
      or (p.state = 'denied' and (r.claimed_by is null or r.claimed_by = p.nonprofit_id)) then concat_ws(' ', r.first_name, r.last_name) end as name) v
  where p.state <> 'withdrawn' or p.opened_at is not null;

create or replace function public.withdraw_request(id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests := private.require_own_request(withdraw_request.id); p record;
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

create or replace function public.open_request(request_id text, nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  b record; r public.requests; part public.request_nonprofits; m public.nonprofit_team_members; f private.first_approvals;
  decides boolean; limit_above numeric; seen text;
begin
  select * into b from private.begin_decision(open_request.request_id, open_request.nonprofit_id, array['admin', 'manager', 'employee']);
  r := b.r; part := b.part; m := b.member;
  seen := private.status_for_part(part.state, r.status);
  if part.opened_at is null and part.state in ('open', 'claimed') and r.status = 'pending' then
    update public.request_nonprofits x set opened_at = now(), opened_by = auth.uid() where x.request_id = r.id and x.nonprofit_id = part.nonprofit_id;
    update public.requests x set review_started_at = coalesce(x.review_started_at, now()) where x.id = r.id returning * into r;
    insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id) values (r.id, 'opened', 'nonprofit', part.nonprofit_id, auth.uid());
  end if;
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
    'part', part.state,
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
      perform private.fail(409, 'amount_differs', 'The first approval was for ' || private.amount_text(f.amount) || '. Deny it to start again.', jsonb_build_object('amount', f.amount));
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
    perform private.notify(r.user_id, 'update', 'Request under final review', org || ' finished its review of ' || r.request_number || '. The decision is next.', '/request/' || r.id, r.id);
    perform private.notify_staff(part.nonprofit_id, 'warning', r.request_number || ' needs a second approval', 'For ' || private.amount_text(granted) || ', by another manager or admin.',
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
  perform private.notify(r.user_id, 'success', 'Request Approved', org || ' approved ' || r.request_number || ' for ' || r.amount || '.', '/request/' || r.id, r.id);
  perform private.mail(r.email, r.request_number || ': your request is approved', jsonb_build_object(
    'number', r.request_number, 'heading', 'Your request is approved',
    'paragraphs', jsonb_build_array(private.greeting(r), org || ' approved your request for ' || r.category || ' with ' || r.amount || '.',
      'They write to you about how the help reaches you.'),
    'button', 'See your request', 'link', private.request_link(r), 'why', private.why_request(r)));
  return jsonb_build_object('status', 'approved', 'amount', r.amount, 'second_approval_needed', false);
end $$;

-- Ends one organization's part. Gives the number of parts that stay open; 0 means the request is now declined.
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
      perform private.notify_staff(other, 'update', r.request_number || ' is open again', 'The nonprofit that had taken it gave it back.', '/nonprofit-request/' || r.id, r.id);
    end loop;
  end if;
  select count(*) into still from public.request_nonprofits x where x.request_id = r.id and x.state in ('open', 'claimed');
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, note)
  values (r.id, case when p_state = 'closed' then 'released' else 'denied' end, 'nonprofit', p_part.nonprofit_id, auth.uid(), p_reason);
  if still > 0 then
    update public.requests x set claimed_by = case when p_part.state = 'claimed' then null else x.claimed_by end,
      status = case when p_part.state = 'claimed' then 'pending' else x.status end,
      needs_more_proof = case when p_part.state = 'claimed' then false else x.needs_more_proof end
    where x.id = r.id;
    perform private.notify(r.user_id, 'info', org || ' could not help with ' || r.request_number,
      'Your request stays open: ' || still || ' more nonprofit' || case when still > 1 then 's have' else ' has' end || ' it.', '/request/' || r.id, r.id);
    perform private.mail(r.email, r.request_number || ': one nonprofit could not help', jsonb_build_object(
      'number', r.request_number, 'heading', 'One nonprofit could not help',
      'paragraphs', jsonb_build_array(private.greeting(r), org || ' cannot help with your request for ' || r.category || '. They write:'),
      'quote', p_reason, 'after', 'Your request stays open. ' || still || ' more nonprofit' || case when still > 1 then 's have' else ' has' end || ' it. You need not do anything.',
      'button', 'See your request', 'link', private.request_link(r), 'why', private.why_request(r)));
  else
    update public.requests x set status = 'declined', denial_reason = p_reason, denial_reason_code = p_reason_code, needs_more_proof = false,
      decided_at = now(), review_started_at = coalesce(x.review_started_at, now())
    where x.id = r.id returning * into r;
    insert into public.request_events (request_id, type, actor, nonprofit_id) values (r.id, 'declined', 'system', p_part.nonprofit_id);
    perform private.notify(r.user_id, 'warning', 'Request Declined', org || ' declined ' || r.request_number || ': ' || left(p_reason, 300), '/request/' || r.id, r.id);
    perform private.mail(r.email, r.request_number || ': your request was declined', jsonb_build_object(
      'number', r.request_number, 'heading', 'Your request was declined',
      'paragraphs', jsonb_build_array(private.greeting(r), org || ' cannot help with your request for ' || r.category || '. They write:'),
      'quote', p_reason, 'button', 'See what you can do next', 'link', private.request_link(r),
      'after', 'You can send it again to other nonprofits as a new request.', 'why', private.why_request(r)));
  end if;
  return still;
end $$;

-- ------------------------------------------------------------------------------------------------- rows and columns

-- Staff have no road to the rows of requests: what they may see of one, open_request and incoming_requests give.
drop policy "staff read requests sent to them" on public.requests;

-- Columns a reader may name. `select=*` works where every column is listed: not on these tables.
revoke select on public.nonprofits from anon;
grant select (id, name, mission, email, phone, website, description, location, category, average_response_time_days, logo_path, status)
  on public.nonprofits to anon;
revoke select on public.request_nonprofits, public.request_events, public.request_documents, public.donations, public.donor_messages,
  public.donor_message_replies from authenticated;
grant select (request_id, nonprofit_id, state, submitted_at, opened_at, acted_at, reason, reason_code) on public.request_nonprofits to authenticated;
grant select (id, request_id, type, actor, nonprofit_id, note, amount, for_requester, created_at) on public.request_events to authenticated;
grant select (id, request_id, name, path, mime_type, size_bytes, kind, created_at) on public.request_documents to authenticated;
grant select (id, nonprofit_id, donor_name, donor_email, amount, status, note, pledged_at, received_at) on public.donations to authenticated;
grant select (id, nonprofit_id, subject, message, recipient_count, created_at) on public.donor_messages to authenticated;
grant select (id, message_id, nonprofit_id, from_name, subject, message, read_at, created_at) on public.donor_message_replies to authenticated;

-- The owner's rows by the index on request_id, from one look at their requests instead of one per row.
alter policy "owner reads the parts" on public.request_nonprofits
  using (request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()))));
alter policy "owner reads the timeline" on public.request_events
  using (for_requester and request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()))));
alter policy "owner reads documents" on public.request_documents
  using (request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()))));
alter policy "owner removes documents of a draft" on public.request_documents
  using (request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()) and r.status = 'draft')));

notify pgrst, 'reload schema';
