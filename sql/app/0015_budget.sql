-- Budget Management: allocations, donations received, payouts on approved requests, and the page's figures in one call.

create view public.approved_grants with (security_barrier = true) as
  select r.id as request_id, r.claimed_by as nonprofit_id, r.request_number, r.category, concat_ws(' ', r.first_name, r.last_name) as requester_name,
    r.amount_approved as granted, p.paid, r.amount_approved - p.paid as outstanding, r.decided_at as approved_at
  from public.requests r
  cross join lateral (select coalesce(sum(t.amount), 0) as paid from public.budget_transactions t where t.request_id = r.id and t.type = 'Payout') p
  where r.status = 'approved' and r.claimed_by = any (array(select private.my_managed_organizations()));

create function public.nonprofit_budget(nonprofit_id text) returns jsonb
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
      with spent as (select coalesce(x.category, 'Other') as c, sum(x.amount) as a from public.budget_transactions x where x.nonprofit_id = np and x.type = 'Approval' group by 1),
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

create function public.set_budget_allocation(nonprofit_id text, category text, amount numeric) returns jsonb
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

-- The Donation transaction of a received donation, and the donor's thanks.
create function private.book_donation(d public.donations) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare org text;
begin
  select n.name into org from public.nonprofits n where n.id = d.nonprofit_id;
  insert into public.budget_transactions (nonprofit_id, type, amount, donation_id, donor, created_by, date)
  values (d.nonprofit_id, 'Donation', d.amount, d.id, coalesce(nullif(d.donor_name, ''), 'A donor'), auth.uid(), d.received_at);
  perform private.notify(d.donor_user_id, 'success', 'Donation received', org || ' received your ' || private.amount_text(d.amount) || '. Thank you.', '/donor-dashboard');
end $$;

create function public.record_donation(nonprofit_id text, amount numeric, donor_name text, donor_email text default null,
  received_at timestamptz default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := record_donation.nonprofit_id; who text := private.clean(record_donation.donor_name); mail text := private.clean(record_donation.donor_email);
  d public.donations;
begin
  perform private.require_member(np, array['admin', 'manager']);
  perform private.require_amount(record_donation.amount);
  if who is null or length(who) > 200 then
    perform private.fail(422, 'validation_failed', 'Please enter the donor''s name', '{"fields": {"donor_name": "Please enter the donor''s name"}}');
  end if;
  if mail is not null and not private.valid_email(mail) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"donor_email": "Please enter a valid email address"}}');
  end if;
  if record_donation.received_at > now() + interval '1 day' then
    perform private.fail(422, 'validation_failed', 'The date cannot be in the future', '{"fields": {"received_at": "The date cannot be in the future"}}');
  end if;
  select * into d from public.donations x where x.pledge_key = record_donation.key and x.nonprofit_id = np;
  if found then return jsonb_build_object('donation_id', d.id, 'repeated', true); end if;
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, received_at, pledged_at, recorded_by, pledge_key)
  values (np, (select a.user_id from private.account_addresses a where a.email = lower(mail) and a.proved_at is not null limit 1), who, mail,
    record_donation.amount, 'received', coalesce(record_donation.received_at, now()), coalesce(record_donation.received_at, now()), auth.uid(), record_donation.key)
  returning * into d;
  perform private.book_donation(d);
  return jsonb_build_object('donation_id', d.id, 'repeated', false);
end $$;

-- A pledge of an organization that the caller manages, locked and still open.
create function private.require_pledge(p_id text) returns public.donations
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

create function public.receive_donation(donation_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare d public.donations := private.require_pledge(receive_donation.donation_id);
begin
  update public.donations x set status = 'received', received_at = now(), recorded_by = auth.uid() where x.id = d.id returning * into d;
  perform private.book_donation(d);
  return jsonb_build_object('status', d.status);
end $$;

create function public.cancel_donation(donation_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare d public.donations := private.require_pledge(cancel_donation.donation_id);
begin
  update public.donations x set status = 'cancelled', recorded_by = auth.uid() where x.id = d.id;
  return '{"status": "cancelled"}';
end $$;

create function public.record_payout(request_id text, amount numeric, note text default null) returns jsonb
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
  perform private.require_amount(a);
  select coalesce(sum(t.amount), 0) into paid from public.budget_transactions t where t.request_id = r.id and t.type = 'Payout';
  if paid + a > r.amount_approved then
    perform private.fail(409, 'payout_exceeds_grant', 'Of this grant ' || private.amount_text(r.amount_approved - paid) || ' is left to pay.',
      jsonb_build_object('outstanding', r.amount_approved - paid));
  end if;
  insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, note, created_by)
  values (r.claimed_by, 'Payout', a, r.category, r.id, r.request_number, left(private.clean(record_payout.note), 1000), auth.uid());
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, amount) values (r.id, 'paid', 'nonprofit', r.claimed_by, auth.uid(), a);
  perform private.notify(r.user_id, 'success', 'Payment recorded', private.amount_text(a) || ' for ' || r.request_number || ' is on its way.', '/request/' || r.id, r.id);
  return jsonb_build_object('granted', r.amount_approved, 'paid', paid + a, 'outstanding', r.amount_approved - paid - a);
end $$;

-- A payout never exceeds its grant, whoever writes it.
create function private.guard_payout() returns trigger
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
create trigger payout_within_grant before insert on public.budget_transactions
  for each row when (new.type = 'Payout') execute function private.guard_payout();
