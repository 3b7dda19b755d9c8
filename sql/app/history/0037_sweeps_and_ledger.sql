-- What is left over is cleared once an hour and by nobody's request, keys between tables are indexed both ways, and what is paid on a
-- grant stands beside it, so that the list of grants need not add up every payout.

-- ------------------------------------------------------------------------------------------------------- sweeps

create or replace function private.take(p_key text, p_max int, p_window interval) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  secs numeric := extract(epoch from p_window);
  start timestamptz := to_timestamp(floor(extract(epoch from now()) / secs) * secs);
  n int;
begin
  insert into private.rate_limits as r (key, window_start, hits) values (p_key, start, 1)
  on conflict (key, window_start) do update set hits = r.hits + 1 returning hits into n;
  return n <= p_max * coalesce(private.setting('rate_limit_factor')::numeric, 1);
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
  insert into private.guest_upload_slots (id, submit_key, path, name, mime_type, size_bytes, address)
  values (new_id, create_guest_upload_slot.key, 'guest/' || private.new_token() || '.' || ext, file, create_guest_upload_slot.mime_type,
    create_guest_upload_slot.size_bytes, who)
  returning * into s;
  return jsonb_build_object('id', s.id, 'bucket', 'request-documents', 'path', s.path, 'expires_at', s.expires_at);
end $$;

create or replace function public.send_address_code(email text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  mine text := (select a.email from private.account_addresses a where a.user_id = auth.uid());
  address text := lower(coalesce(private.clean(send_address_code.email), mine));
  network text := private.client_network();
  who text := coalesce('user:' || auth.uid(), 'net:' || network);
  code text := private.new_code();
begin
  if not private.valid_email(address) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"email": "Please enter a valid email address"}}');
  end if;
  if address = mine then
    perform private.require_rate('code-own:' || auth.uid(), 6, interval '1 hour');
  else
    perform private.require_rate('code-caller:' || network, 20, interval '1 hour');
    perform private.require_rate('code-pair:' || network || ':' || address, 5, interval '1 hour');
    perform private.require_rate('code-for:' || address, 15, interval '1 hour');
  end if;
  update private.address_codes c set expires_at = now() where c.email = address and c.asker = who and c.used_at is null and c.expires_at > now();
  insert into private.address_codes (email, asker, code_hash) values (address, who, private.hash_token(address || ':' || code));
  perform private.mail(address, code || ' is your AidBridge code', jsonb_build_object(
    'kicker', 'Your code', 'number', code, 'heading', 'Type this code on the page you came from',
    'paragraphs', jsonb_build_array('It is good for 15 minutes. If you did not ask for it, you need not do anything.'),
    'why', 'You get this mail because someone typed this address on AidBridge.'));
  return '{"sent": true}';
end $$;

create or replace function public.check_address_code(email text, code text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  address text := lower(private.clean(check_address_code.email));
  network text := private.client_network();
  c private.address_codes; token text; result jsonb; got record; own boolean;
begin
  own := exists (select 1 from private.account_addresses a where a.user_id = auth.uid() and a.email = address);
  if own then
    perform private.require_rate('check-own:' || auth.uid(), 40, interval '1 hour');
  else
    perform private.require_rate('check-code:' || network, 60, interval '1 hour');
  end if;
  update private.address_codes x set tries = x.tries + 1
  where x.id = (select y.id from private.address_codes y
                where y.email = address and y.asker in ('user:' || auth.uid(), 'net:' || network) and y.used_at is null and y.expires_at > now() and y.tries < 5
                order by y.created_at desc limit 1 for update)
  returning * into c;
  if c.id is null then return '{"ok": false, "reason": "expired", "tries_left": 0}'; end if;
  if c.code_hash <> private.hash_token(address || ':' || regexp_replace(coalesce(check_address_code.code, ''), '\D', '', 'g')) then
    return jsonb_build_object('ok', false, 'reason', case when c.tries >= 5 then 'expired' else 'wrong_code' end, 'tries_left', 5 - c.tries);
  end if;
  update private.address_codes x set used_at = now() where x.id = c.id;
  token := private.new_token();
  insert into private.address_proofs (token_hash, email) values (private.hash_token(token), address);
  result := jsonb_build_object('ok', true, 'proof', token, 'matches', coalesce((
    select jsonb_agg(jsonb_build_object('id', p.id, 'fullName', coalesce(p.full_name, ''), 'email', p.email, 'matchType', 'email'))
    from public.profiles p where lower(p.email) = address), '[]'::jsonb));
  if own then
    update private.account_addresses a set proved_at = coalesce(a.proved_at, now()) where a.user_id = auth.uid();
    select * into got from private.claim_for(auth.uid(), address);
    result := result || jsonb_build_object('claimed_requests', got.requests, 'claimed_donations', got.donations,
      'sent_invitations', private.send_waiting_invitations(auth.uid()));
  end if;
  return result;
end $$;

-- Clears what has served: uses counted for limits, codes, proofs. Rows that somebody holds wait for the next hour.
create function private.sweep() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from private.rate_limits x using (select r.key, r.window_start from private.rate_limits r
    where r.window_start < now() - interval '2 days' for update skip locked) old where (x.key, x.window_start) = (old.key, old.window_start);
  delete from private.address_codes x using (select c.id from private.address_codes c
    where c.expires_at < now() - interval '2 days' for update skip locked) old where x.id = old.id;
  delete from private.address_proofs x using (select p.token_hash from private.address_proofs p
    where p.expires_at < now() for update skip locked) old where x.token_hash = old.token_hash;
  perform private.add_up_tally();
end $$;
insert into ferrobase.hourly (function) values ('private.sweep') on conflict do nothing;

-- -------------------------------------------------------------------------------------------------------- keys

drop index public.budget_transactions_payouts;
drop index public.budget_transactions_recent;
create index budget_transactions_recent on public.budget_transactions (nonprofit_id, date desc, id);
create index budget_transactions_request on public.budget_transactions (request_id) where request_id is not null;
create index guest_upload_slots_request on private.guest_upload_slots (request_id) where request_id is not null;

-- ------------------------------------------------------------------------------------------------------ grants

alter table public.requests add column amount_paid numeric(12, 2) not null default 0 constraint requests_amount_paid check (amount_paid >= 0);
comment on column public.requests.amount_paid is 'Sum of the payouts on this grant.';

create function private.add_payout() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if tg_op <> 'INSERT' and old.type = 'Payout' then
    update public.requests r set amount_paid = r.amount_paid - old.amount where r.id = old.request_id;
  end if;
  if tg_op <> 'DELETE' and new.type = 'Payout' then
    update public.requests r set amount_paid = r.amount_paid + new.amount where r.id = new.request_id;
  end if;
  return null;
end $$;
create trigger add_payout after insert or delete or update of type, amount, request_id on public.budget_transactions
  for each row execute function private.add_payout();

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

update public.requests r set amount_paid = t.paid
from (select b.request_id, sum(b.amount) as paid from public.budget_transactions b where b.type = 'Payout' group by 1) t
where r.id = t.request_id;

create index requests_grants on public.requests (claimed_by, (amount_approved - amount_paid) desc, id) where status = 'approved';

create or replace view public.approved_grants with (security_barrier = true) as
  select r.id as request_id, r.claimed_by as nonprofit_id, r.request_number, r.category, concat_ws(' ', r.first_name, r.last_name) as requester_name,
    r.amount_approved as granted, r.amount_paid::numeric as paid, r.amount_approved - r.amount_paid as outstanding, r.decided_at as approved_at
  from public.requests r
  where r.status = 'approved' and r.claimed_by = any (array(select private.my_managed_organizations()));

-- A page of an organization's grants: what is left to pay first. `search`: words of number, category or name, as in Incoming Requests.
create function public.grants_page(nonprofit_id text, search text default null, page int default 1, page_size int default 20) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := grants_page.nonprofit_id; size int := least(greatest(coalesce(grants_page.page_size, 20), 1), 1000);
  start bigint := (least(greatest(coalesce(grants_page.page, 1), 1), 1000000)::bigint - 1) * size;
  patterns text[] := private.search_patterns(grants_page.search); ids text[]; total bigint;
begin
  perform private.require_member(np, array['admin', 'manager']);
  if patterns = '{}' then
    ids := array(select r.id from public.requests r where r.claimed_by = np and r.status = 'approved'
      order by r.amount_approved - r.amount_paid desc, r.id offset start limit size);
    total := private.incoming_counts(np) ->> 'approved';
  else
    execute 'with hits as materialized (select p.request_id from public.request_nonprofits p where p.nonprofit_id = $1 and p.status = ''approved'' and p.state = ''claimed'''
      || (select string_agg(format(' and p.search_text like %L', x), '') from unnest(patterns) x) || ' limit 1000)
      select (select count(*) from hits), array(select r.id from hits h join public.requests r on r.id = h.request_id
        order by r.amount_approved - r.amount_paid desc, r.id offset $2 limit $3)'
      into total, ids using np, start, size;
  end if;
  return jsonb_build_object('total', total, 'rows', coalesce((select jsonb_agg(jsonb_build_object('request_id', r.id, 'request_number', r.request_number, 'category', r.category,
      'requester_name', concat_ws(' ', r.first_name, r.last_name), 'granted', r.amount_approved, 'paid', r.amount_paid, 'outstanding', r.amount_approved - r.amount_paid,
      'approved_at', r.decided_at) order by w.n)
    from unnest(ids) with ordinality w (id, n) join public.requests r on r.id = w.id), '[]'::jsonb));
end $$;

-- ------------------------------------------------------------------------------------------------------ sums

-- Changes in the sums of an organization's ledger, kept like the counts of its requests (see 0036).
create table private.budget_tally (
  nonprofit_id text not null,
  type text not null,
  category text,
  change numeric not null
);
create index budget_tally_organization on private.budget_tally (nonprofit_id) include (type, category, change);
alter table private.budget_tally enable row level security;

create function private.tally_money_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.budget_tally (nonprofit_id, type, category, change) select a.nonprofit_id, a.type, a.category, sum(a.amount) from added a group by 1, 2, 3;
  return null;
end $$;
create function private.tally_money_removed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.budget_tally (nonprofit_id, type, category, change) select g.nonprofit_id, g.type, g.category, -sum(g.amount) from gone g group by 1, 2, 3;
  return null;
end $$;
create trigger tally_added after insert on public.budget_transactions referencing new table as added for each statement execute function private.tally_money_added();
create trigger tally_removed after delete on public.budget_transactions referencing old table as gone for each statement execute function private.tally_money_removed();
create trigger tally_gone after update on public.budget_transactions referencing old table as gone for each statement execute function private.tally_money_removed();
create trigger tally_come after update on public.budget_transactions referencing new table as added for each statement execute function private.tally_money_added();
insert into private.budget_tally (nonprofit_id, type, category, change)
select t.nonprofit_id, t.type, t.category, sum(t.amount) from public.budget_transactions t group by 1, 2, 3;

create or replace function private.add_up_tally() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  with taken as (delete from private.incoming_tally returning *)
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select t.nonprofit_id, t.status, t.category, t.due, sum(t.change) from taken t group by 1, 2, 3, 4 having sum(t.change) <> 0;
  with taken as (delete from private.budget_tally returning *)
  insert into private.budget_tally (nonprofit_id, type, category, change)
  select t.nonprofit_id, t.type, t.category, sum(t.change) from taken t group by 1, 2, 3 having sum(t.change) <> 0;
end $$;

create or replace function private.budget_totals(p_nonprofit_id text, out allocated numeric, out donated numeric, out approved numeric, out paid numeric)
language sql stable security definer set search_path = '' as $$
  select
    (select coalesce(sum(a.amount), 0) from public.budget_allocations a where a.nonprofit_id = p_nonprofit_id),
    coalesce(sum(t.change) filter (where t.type = 'Donation'), 0),
    coalesce(sum(t.change) filter (where t.type = 'Approval'), 0),
    coalesce(sum(t.change) filter (where t.type = 'Payout'), 0)
  from private.budget_tally t where t.nonprofit_id = p_nonprofit_id
$$;

create or replace function public.nonprofit_budget(nonprofit_id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := nonprofit_budget.nonprofit_id; t record;
begin
  perform private.require_member(np, array['admin', 'manager']);
  select * into t from private.budget_totals(np);
  return jsonb_build_object(
    'totalAllocated', t.allocated, 'totalDonated', t.donated, 'totalApproved', t.approved, 'totalPaid', t.paid,
    'remainingAvailable', t.donated - t.approved,
    'utilization', case when t.allocated > 0 then round(100 * t.approved / t.allocated) else 0 end,
    'spendingByCategory', (
      with spent as (select coalesce(x.category, 'Other') as c, sum(x.change) as a from private.budget_tally x where x.nonprofit_id = np and x.type = 'Approval' group by 1),
        planned as (select x.category as c, x.amount as a from public.budget_allocations x where x.nonprofit_id = np)
      select coalesce(jsonb_agg(jsonb_build_object('category', coalesce(p.c, s.c), 'amount', coalesce(s.a, 0), 'allocated', coalesce(p.a, 0),
          'percentage', case when p.a > 0 then round(100 * coalesce(s.a, 0) / p.a) end) order by coalesce(s.a, 0) desc, coalesce(p.a, 0) desc, coalesce(p.c, s.c)), '[]'::jsonb)
      from planned p full join spent s on lower(s.c) = lower(p.c)),
    'recentTransactions', coalesce((select jsonb_agg(jsonb_build_object('id', x.id, 'requestId', x.request_id, 'requestNumber', x.request_number, 'type', x.type,
        'amount', x.amount, 'date', x.date, 'category', x.category, 'donor', x.donor) order by x.date desc, x.id)
      from (select * from public.budget_transactions y where y.nonprofit_id = np order by y.date desc, y.id limit 10) x), '[]'::jsonb),
    'pledges', coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'donor_name', d.donor_name, 'donor_email', d.donor_email, 'amount', d.amount,
        'pledged_at', d.pledged_at) order by d.pledged_at) from public.donations d where d.nonprofit_id = np and d.status = 'pledged'), '[]'::jsonb));
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
        select p.request_id from public.request_nonprofits p where p.nonprofit_id = np and p.status = 'pending' and not p.needs_more_proof order by p.submitted_at limit 1)) end,
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

-- ------------------------------------------------------------------------------------------------- who reads what

-- Whoever is signed in reads of other organizations what everybody reads. The table is its members' own; the directory is for all.
create view public.nonprofit_directory with (security_barrier = true) as
  select n.id, n.name, n.mission, n.email, n.phone, n.website, n.description, n.location, n.category, n.average_response_time_days, n.logo_path,
    lower(concat_ws(' ', '', n.name, n.location)) as search_text
  from public.nonprofits n where n.status = 'active';
comment on view public.nonprofit_directory is 'Active organizations, with what they publish.';
revoke all on public.nonprofit_directory from public, anon, authenticated, service_role;
grant select on public.nonprofit_directory to anon, authenticated, service_role;

drop policy "everyone reads active organizations" on public.nonprofits;
create policy "visitors read active organizations" on public.nonprofits for select to anon using (status = 'active');

-- The name of an organization, for those who know its id from a row that they may read.
create function private.organization_name(p_id text) returns text
language sql stable security definer set search_path = '' as $$
  select n.name from public.nonprofits n where n.id = p_id
$$;

create or replace view public.my_requests with (security_invoker = true) as
  select r.id, r.request_number, r.title, r.description, r.category, r.category_id, r.amount, r.amount_requested, r.amount_approved,
    r.status, r.needs_more_proof, r.pending_notes, r.denial_reason, r.nonprofits,
    array(select private.organization_name(p.nonprofit_id) from public.request_nonprofits p
          where p.request_id = r.id order by array_position(r.nonprofits, p.nonprofit_id)) as nonprofit_names,
    private.organization_name(r.claimed_by) as claimed_by_name,
    r.submitted_at, r.decided_at, r.updated_at,
    lower(concat_ws(' ', '', r.request_number, r.category, r.title, r.description)) as search_text
  from public.requests r
  where r.user_id = (select auth.uid()) and r.status <> 'draft';

revoke all on function private.part_shows_person(text, text, text), private.write_line(), private.write_lines_of_request(), private.is_due(text, boolean),
  private.tally_added(), private.tally_removed(), private.tally_changed(), private.add_up_tally(), private.tally_money_added(), private.tally_money_removed(), private.incoming_counts(text),
  private.incoming_ids(text, text[], text, text, boolean, bigint, int), private.incoming_order(text, boolean), private.incoming_rows(text, text[]), private.search_patterns(text),
  private.sweep(), private.add_payout(), private.organization_name(text), public.incoming_page(text, text, text, text, boolean, int, int),
  public.grants_page(text, text, int, int) from public, anon, authenticated, service_role;
grant execute on function private.organization_name(text), private.part_shows_person(text, text, text) to authenticated, service_role;
grant execute on function private.sweep() to service_role;
grant execute on function public.incoming_page(text, text, text, text, boolean, int, int), public.grants_page(text, text, int, int) to authenticated, service_role;

notify pgrst, 'reload schema';
