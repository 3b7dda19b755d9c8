-- Budgets, donations and payouts. The ledger is budget_transactions; sums of it are kept as they change.

-- ---------------------------------------------------------------------------------------------------------- the ledger

create or replace function private.add_payout() returns trigger
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

-- No payout may exceed its grant, whoever writes it.
create or replace function private.guard_payout() returns trigger
language plpgsql security definer set search_path = '' as $$
declare granted numeric; paid numeric;
begin
  if new.request_id is null then return new; end if;
  select r.amount_approved into granted from public.requests r where r.id = new.request_id and r.status = 'approved' for update;
  select coalesce(sum(t.amount), 0) into paid from public.budget_transactions t where t.request_id = new.request_id and t.type = 'Payout';
  if granted is null or paid + new.amount > granted then
    perform private.fail(409, 'payout_exceeds_grant', 'A payout cannot exceed its grant.', jsonb_build_object('outstanding', coalesce(granted, 0) - paid));
  end if;
  return new;
end $$;

-- The same rule for transactions, however a row is written.
create or replace function private.guard_own_transaction() returns trigger
language plpgsql security definer set search_path = '' as $$
declare r public.requests;
begin
  select * into r from public.requests x where x.id = new.request_id;
  perform private.refuse_own_request(r, new.created_by);
  return new;
end $$;

create or replace function private.tally_money_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.budget_tally (nonprofit_id, type, category, change) select a.nonprofit_id, a.type, a.category, sum(a.amount) from added a group by 1, 2, 3;
  return null;
end $$;

create or replace function private.tally_money_removed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.budget_tally (nonprofit_id, type, category, change) select g.nonprofit_id, g.type, g.category, -sum(g.amount) from gone g group by 1, 2, 3;
  return null;
end $$;

-- Sums of one organization, as the budget page and the dashboard show them.
create or replace function private.budget_totals(p_nonprofit_id text, out allocated numeric, out donated numeric, out approved numeric, out paid numeric)
language sql stable security definer set search_path = '' as $$
  select
    (select coalesce(sum(a.amount), 0) from public.budget_allocations a where a.nonprofit_id = p_nonprofit_id),
    coalesce(sum(t.change) filter (where t.type = 'Donation'), 0),
    coalesce(sum(t.change) filter (where t.type = 'Approval'), 0),
    coalesce(sum(t.change) filter (where t.type = 'Payout'), 0)
  from private.budget_tally t where t.nonprofit_id = p_nonprofit_id
$$;

-- ---------------------------------------------------------------------------------------------------------- the budget

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

create or replace function public.set_budget_allocation(nonprofit_id text, category text, amount numeric) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := set_budget_allocation.nonprofit_id; c text := private.clean(set_budget_allocation.category); a numeric := set_budget_allocation.amount;
begin
  perform private.require_member(np, array['admin', 'manager']);
  if c is null or length(c) > 100 then
    perform private.fail(422, 'validation_failed', 'Please select a category', '{"fields": {"category": "Please select a category"}}');
  end if;
  if a = 0 then
    delete from public.budget_allocations x where x.nonprofit_id = np and lower(x.category) = lower(c);
  else
    insert into public.budget_allocations (nonprofit_id, category, amount, updated_by) values (np, c, private.require_amount(a), auth.uid())
    on conflict (nonprofit_id, lower(category)) do update set amount = excluded.amount, updated_by = excluded.updated_by;
  end if;
  return jsonb_build_object('category', c, 'amount', a);
end $$;

-- A page of an organization's grants, outstanding ones first. `search`: words of number, category or name, as in
-- Incoming Requests.
create or replace function public.grants_page(nonprofit_id text, search text default null, page int default 1, page_size int default 20) returns jsonb
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

create or replace function public.record_payout(request_id text, amount numeric, note text default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests; paid numeric; a numeric := record_payout.amount;
  content jsonb := jsonb_build_object('amount', private.amount_text(record_payout.amount), 'note', private.clean(record_payout.note));
begin
  perform private.require_user();
  perform private.keep_open((select x.claimed_by from public.requests x where x.id = private.request_id_of(record_payout.request_id)
    and x.claimed_by in (select private.my_staff_organizations())));
  select * into r from public.requests x where x.id = private.request_id_of(record_payout.request_id)
    and x.claimed_by in (select private.my_staff_organizations()) for update;
  if not found then perform private.fail_request_not_found(); end if;
  perform private.require_member(r.claimed_by, array['admin', 'manager']);
  if r.status <> 'approved' then
    perform private.fail(409, 'not_approved', 'Only an approved request can be paid.', jsonb_build_object('status', r.status));
  end if;
  select coalesce(sum(t.amount), 0) into paid from public.budget_transactions t where t.request_id = r.id and t.type = 'Payout';
  if exists (select 1 from public.budget_transactions t where t.request_id = r.id and t.payout_key = record_payout.key) then
    perform private.require_same_content('payout:' || r.id, record_payout.key, content, 'Another payment of ' || (
      select private.amount_text(t.amount) from public.budget_transactions t where t.payout_key = record_payout.key)
      || ' was recorded from this form already. What you changed since was not recorded. Close this window and look at the list.');
    return jsonb_build_object('granted', r.amount_approved, 'paid', paid, 'outstanding', r.amount_approved - paid, 'repeated', true);
  end if;
  perform private.require_amount(a);
  if paid + a > r.amount_approved then
    perform private.fail(409, 'payout_exceeds_grant', 'Of this grant ' || private.amount_text(r.amount_approved - paid) || ' is left to pay.',
      jsonb_build_object('outstanding', r.amount_approved - paid));
  end if;
  insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, note, created_by, payout_key)
  values (r.claimed_by, 'Payout', a, r.category, r.id, r.request_number, left(private.clean(record_payout.note), 1000), auth.uid(), record_payout.key);
  perform private.keep_content('payout:' || r.id, record_payout.key, content);
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, amount) values (r.id, 'paid', 'nonprofit', r.claimed_by, auth.uid(), a);
  perform private.notify(r.user_id, 'success', 'paid', jsonb_build_object('amount', a, 'number', r.request_number), '/request/' || r.id, r.id);
  return jsonb_build_object('granted', r.amount_approved, 'paid', paid + a, 'outstanding', r.amount_approved - paid - a, 'repeated', false);
end $$;

-- ----------------------------------------------------------------------------------------------------------- donations

-- The Donation transaction of a received donation, and the donor's thanks.
create or replace function private.book_donation(d public.donations) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare org text;
begin
  select n.name into org from public.nonprofits n where n.id = d.nonprofit_id;
  insert into public.budget_transactions (nonprofit_id, type, amount, donation_id, donor, created_by, date)
  values (d.nonprofit_id, 'Donation', d.amount, d.id, nullif(d.donor_name, ''), auth.uid(), d.received_at);
  perform private.notify(d.donor_user_id, 'success', 'donationReceived', jsonb_build_object('nonprofit', org, 'amount', d.amount), '/donor-dashboard');
end $$;

-- A pledge of an organization that the caller manages, locked and still open.
create or replace function private.require_pledge(p_id text) returns public.donations
language plpgsql volatile security definer set search_path = '' as $$
declare d public.donations;
begin
  perform private.require_user();
  select * into d from public.donations x where x.id = p_id and x.nonprofit_id in (select private.my_managed_organizations()) for update;
  if not found then perform private.fail(404, 'donation_not_found', 'This donation could not be found.'); end if;
  perform private.require_member(d.nonprofit_id, array['admin', 'manager']);
  if d.status <> 'pledged' then
    perform private.fail(409, 'donation_already_decided', 'This donation has already been ' || d.status || '.', jsonb_build_object('status', d.status));
  end if;
  return d;
end $$;

create or replace function public.record_donation(nonprofit_id text, amount numeric, donor_name text, donor_email text default null,
  received_at timestamptz default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := record_donation.nonprofit_id; who text := private.clean(record_donation.donor_name); mail text := private.clean(record_donation.donor_email);
  d public.donations;
  content jsonb := jsonb_build_object('amount', private.amount_text(record_donation.amount), 'name', who, 'email', lower(mail), 'received_at', record_donation.received_at);
begin
  perform private.require_member(np, array['admin', 'manager']);
  perform private.require_amount(record_donation.amount);
  if who is null or length(who) > 200 then
    perform private.fail(422, 'validation_failed', 'Please enter the donor''s name', '{"fields": {"donor_name": "Please enter the donor''s name"}}');
  end if;
  if mail is not null and not private.valid_email(mail) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"donor_email": "Please enter a valid email address"}}');
  end if;
  if record_donation.received_at < timestamptz '1900-01-01' then
    perform private.fail_fields('Please enter a valid date', '{"received_at": "Please enter a valid date"}');
  end if;
  if record_donation.received_at > now() + interval '1 day' then
    perform private.fail(422, 'validation_failed', 'The date cannot be in the future', '{"fields": {"received_at": "The date cannot be in the future"}}');
  end if;
  if record_donation.key is not null then
    perform pg_advisory_xact_lock(hashtextextended('donation:' || record_donation.key, 0));
    select * into d from public.donations x where x.pledge_key = record_donation.key and x.nonprofit_id = np;
    if found then
      perform private.require_same_content('donation:' || np, record_donation.key, content, 'A donation of ' || private.amount_text(d.amount)
        || ' was recorded from this form already. What you changed since was not recorded. Close this window and look at the list.');
      return jsonb_build_object('donation_id', d.id, 'repeated', true);
    end if;
  end if;
  -- each is shown in the donor's account, if there is one
  perform private.require_rate('donation:' || np, 300, interval '1 hour');
  if mail is not null then perform private.require_rate('donation-for:' || private.folded(mail), 30, interval '1 day'); end if;
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, received_at, pledged_at, recorded_by, pledge_key)
  values (np, (select a.user_id from private.account_addresses a where a.email = private.folded(mail) and a.proved_at is not null limit 1), who, mail,
    record_donation.amount, 'received', coalesce(record_donation.received_at, now()), coalesce(record_donation.received_at, now()), auth.uid(), record_donation.key)
  returning * into d;
  perform private.keep_content('donation:' || np, record_donation.key, content);
  perform private.book_donation(d);
  return jsonb_build_object('donation_id', d.id, 'repeated', false);
end $$;

-- Anybody may pledge. The same key is one pledge, and the donor is mailed a confirmation.
create or replace function public.pledge_donation(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := auth.uid(); k uuid; a numeric; mail text := private.clean(input ->> 'email'); n public.nonprofits; d public.donations; errors jsonb := '{}';
  content jsonb;
begin
  begin k := (input ->> 'key')::uuid; exception when invalid_text_representation then k := null; end;
  begin a := replace(replace(input ->> 'amount', '$', ''), ',', '')::numeric; exception when data_exception then a := null; end;
  mail := coalesce(mail, (select p.email from public.profiles p where p.id = uid));
  if k is null then errors := errors || '{"key": "A key is required"}'; end if;
  if not private.valid_email(mail) then errors := errors || '{"email": "Please enter a valid email address"}'; end if;
  if a is null then errors := errors || '{"amount": "Amount must be a number"}'; end if;
  if private.clean(input ->> 'nonprofit_id') is null then errors := errors || '{"nonprofit_id": "Please select a nonprofit"}'; end if;
  if errors <> '{}' then perform private.fail(422, 'validation_failed', 'Please check the marked fields.', jsonb_build_object('fields', errors)); end if;
  perform private.require_amount(a);
  select * into n from public.nonprofits x where x.id = input ->> 'nonprofit_id' and x.status = 'active';
  if not found then perform private.fail(404, 'organization_not_found', 'This nonprofit is not available.'); end if;
  perform pg_advisory_xact_lock(hashtextextended('pledge:' || k, 0));
  content := jsonb_build_object('nonprofit', n.id, 'amount', private.amount_text(a), 'email', lower(mail), 'name', private.clean(input ->> 'name'));
  select * into d from public.donations x where x.pledge_key = k;
  if found then
    perform private.require_same_content('pledge', k, content,
      'Your first pledge was recorded already. What you changed since was not recorded. Close this window to make another pledge.');
    return jsonb_build_object('donation_id', d.id, 'nonprofit', (select x.name from public.nonprofits x where x.id = d.nonprofit_id), 'amount', d.amount, 'repeated', true);
  end if;
  perform private.require_rate('pledge:' || coalesce(uid::text, private.client_network()), 10, interval '1 hour');
  perform private.require_rate('pledge-for:' || lower(mail), 10, interval '1 day');  -- each sends that address a mail
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, pledge_key)
  values (n.id, uid, coalesce(left(private.clean(input ->> 'name'), 200), (select p.full_name from public.profiles p where p.id = uid), ''), mail, a, k)
  returning * into d;
  perform private.keep_content('pledge', k, content);
  perform private.notify_staff(n.id, 'info', 'pledged', jsonb_build_object('amount', a, 'donor', d.donor_name), '/nonprofit-budget', null, array['admin', 'manager']);
  perform private.mail_words(mail, private.caller_language(), 'pledged', jsonb_build_object('amount', a, 'nonprofit', n.name),
    jsonb_build_object('unsubscribe', private.unsubscribe_link(n.id, mail)));
  return jsonb_build_object('donation_id', d.id, 'nonprofit', n.name, 'amount', a, 'repeated', false);
end $$;

create or replace function public.receive_donation(donation_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare d public.donations := private.require_pledge(receive_donation.donation_id);
begin
  update public.donations x set status = 'received', received_at = now(), recorded_by = auth.uid() where x.id = d.id returning * into d;
  perform private.book_donation(d);
  return jsonb_build_object('status', d.status);
end $$;

create or replace function public.cancel_donation(donation_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare d public.donations := private.require_pledge(cancel_donation.donation_id);
begin
  update public.donations x set status = 'cancelled', recorded_by = auth.uid() where x.id = d.id;
  return '{"status": "cancelled"}';
end $$;

-- Totals only, never a person. 'People impacted' are the distinct people whose requests an organization approved since
-- it received the caller's first gift; 'paid for' divides each gift by what the organization approved since.
create or replace function public.donor_dashboard() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare uid uuid := private.require_user();
begin
  return (
    with gifts as (select d.id, d.nonprofit_id, d.amount, d.received_at from public.donations d where d.donor_user_id = uid and d.status = 'received'),
    since as (select g.nonprofit_id, min(g.received_at) as at from gifts g group by 1),
    -- Shows only groups of at least ten people. Smaller ones are combined, together with the smallest large group if
    -- they are fewer than ten in all.
    helped as (
      select coalesce(t.category, 'Other') as category, private.person_of(r) as person
      from since s join public.budget_transactions t on t.nonprofit_id = s.nonprofit_id and t.type = 'Approval' and t.date >= s.at
      left join public.requests r on r.id = t.request_id),
    crowd as (select h.category, count(distinct h.person) as people from helped h group by 1),
    few as (select c.category from crowd c where c.people < 10),
    together as (select count(distinct h.person) as people from helped h join few f using (category)),
    joined as (select f.category from few f
      union all
      (select c.category from crowd c, together g where c.people >= 10 and exists (select from few) and g.people < 10 order by c.people, c.category limit 1)),
    told as (select c.category, case when j.category is null then c.category else 'Other' end as named
      from crowd c left join joined j using (category) where exists (select from crowd x where x.people >= 10) or (select g.people from together g) >= 10),
    share as (
      select g.id, g.amount, coalesce(t.category, 'Other') as category, sum(t.amount) as spent, sum(sum(t.amount)) over (partition by g.id) as total
      from gifts g join public.budget_transactions t on t.nonprofit_id = g.nonprofit_id and t.type = 'Approval' and t.date >= g.received_at
      group by 1, 2, 3),
    paid_for as (select t.named as category, round(sum(s.amount * s.spent / s.total), 2) as amount from share s join told t using (category) group by 1)
    select jsonb_build_object(
      'total_donated', coalesce((select sum(g.amount) from gifts g), 0),
      'people_impacted', (select count(distinct private.person_of(r)) from since s
        join public.requests r on r.claimed_by = s.nonprofit_id and r.status = 'approved' and r.decided_at >= s.at),
      'nonprofits_supported', (select count(*) from since),
      'donations', coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'nonprofit_id', n.id, 'nonprofit_name', n.name, 'amount', d.amount, 'status', d.status,
          'pledged_at', d.pledged_at, 'received_at', d.received_at) order by coalesce(d.received_at, d.pledged_at) desc)
        from public.donations d join public.nonprofits n on n.id = d.nonprofit_id where d.donor_user_id = uid), '[]'::jsonb),
      'paid_for', coalesce((select jsonb_agg(jsonb_build_object('category', p.category, 'amount', p.amount) order by p.amount desc) from paid_for p), '[]'::jsonb),
      'messages', coalesce((select jsonb_agg(to_jsonb(m) order by m.date desc) from (select * from public.my_donor_messages order by date desc limit 5) m), '[]'::jsonb),
      'unread_messages', (select count(*) from public.donor_message_recipients r where r.donor_user_id = uid and r.read_at is null)));
end $$;
