-- Ten thousand requests: what a page reads goes by an index, and the staff's lists stay quick.
begin;
select tests.start();
select tests.cast_of_people();

insert into public.requests (id, request_number, user_id, category_id, description, amount, amount_requested, amount_approved, status, nonprofits, first_name, last_name, email, phone,
  address, city, state, postal_code, contact_consent, claimed_by, submitted_at, review_started_at, decided_at, denial_reason, denial_reason_code)
select 'many-' || i, 'REQ-' || 500000 + i, case when i % 50 = 0 then tests.id('alice') end, 't-cat', 'We need food for two weeks, number ' || i, '$250', 250, case when i % 3 = 0 then 250 end,
  case i % 3 when 0 then 'approved' when 1 then 'pending' else 'declined' end, array['x', 'y'], 'First' || i % 50, 'Last' || i % 70, 'p' || i || '@tests.example', '12345', '1 Long Street', 'Portland', 'ME', '04101',
  true, case when i % 3 = 0 then 'x' end, now() - i * interval '30 minutes', now(), case when i % 3 <> 1 then now() end, case when i % 3 = 2 then 'no' end, case when i % 3 = 2 then 'other' end
from generate_series(1, 10000) i;
insert into public.request_nonprofits (request_id, nonprofit_id, state, submitted_at)
select r.id, n, case when r.status = 'pending' then 'open' when r.status = 'declined' then 'denied' when n = 'x' then 'claimed' else 'taken' end, r.submitted_at
from public.requests r, unnest(r.nonprofits) n where r.id like 'many-%';
insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, date)
select 'x', 'Approval', 250, 'Test Food', id, decided_at from public.requests where id like 'many-%' and status = 'approved';
insert into public.notifications (user_id, title, message, date)
select tests.id(case when i % 20 = 0 then 'alice' else 'bob' end), 't', 'm', now() - i * interval '1 minute' from generate_series(1, 10000) i;
analyze public.requests, public.request_nonprofits, public.budget_transactions, public.notifications;

-- The plan of a statement as somebody; raises when it reads a whole one of the large tables.
create function pg_temp.by_index(who text, statement text) returns void language plpgsql as $$
declare line text; plan text := '';
begin
  perform tests.become(who);
  for line in execute 'explain ' || statement loop plan := plan || line || E'\n'; end loop;
  perform set_config('role', 'none', true);
  perform tests.counted();
  if plan ~ 'Seq Scan on (requests|request_nonprofits|budget_transactions|notifications)\M' then
    raise exception 'as %: % reads a whole table: %', who, statement, plan;
  end if;
end $$;
-- Runs a statement as somebody within two seconds.
create function pg_temp.quick(who text, statement text) returns void language plpgsql as $$
declare started timestamptz := clock_timestamp();
begin
  perform tests.become(who);
  execute statement;
  perform set_config('role', 'none', true);
  perform tests.counted();
  if clock_timestamp() - started > interval '2 seconds' then
    raise exception 'as %: % took %', who, statement, clock_timestamp() - started;
  end if;
end $$;

do $$
declare alice text := quote_literal(tests.id('alice')); q text;
begin
  perform pg_temp.by_index('alice', 'select * from public.my_requests order by submitted_at desc limit 20');
  perform pg_temp.by_index('alice', 'select * from public.my_requests where status = ''pending'' and submitted_at >= now() - interval ''60 days'' order by submitted_at desc limit 20');
  perform pg_temp.by_index('alice', 'select * from public.requests where user_id = ' || alice || ' and status = ''draft'' order by updated_at desc');
  perform pg_temp.by_index('alice', 'select * from public.requests where id = ''many-50''');
  perform pg_temp.by_index('alice', 'select id, type, note from public.request_events where request_id = ''many-50'' order by created_at');
  perform pg_temp.by_index('alice', 'select * from public.notifications where user_id = ' || alice || ' order by date desc limit 20');
  perform pg_temp.by_index('alice', 'select count(*) from public.notifications where user_id = ' || alice || ' and not read');
  perform pg_temp.by_index('manager', 'select * from public.budget_transactions where nonprofit_id = ''x'' order by date desc limit 20');
  foreach q in array array['select * from public.incoming_requests where nonprofit_id = ''x'' order by submitted_at desc limit 20',
    'select * from public.incoming_requests where nonprofit_id = ''x'' and status = ''pending'' order by submitted_at limit 20 offset 3000',
    'select * from public.incoming_requests where nonprofit_id = ''x'' and search_text ilike ''%last42%'' order by submitted_at desc limit 20',
    'select count(*) from public.incoming_requests where nonprofit_id = ''x''', 'select public.incoming_request_counts(''x'')',
    'select public.nonprofit_dashboard(''x'')', 'select public.nonprofit_budget(''x'')', 'select public.open_request(''many-1'', ''x'')',
    'select * from public.approved_grants where nonprofit_id = ''x'' and outstanding > 0 order by approved_at limit 20'] loop
    perform pg_temp.quick('manager', q);
  end loop;
  perform pg_temp.quick('donor', 'select public.donor_dashboard()');
  perform pg_temp.quick('alice', 'select public.requester_dashboard()');
  perform pg_temp.quick('anon', 'select public.request_status(''REQ-500007'')');
  perform tests.same('every one is counted', (tests.act('manager', 'select public.incoming_request_counts(''x'')') ->> 'all')::int, 10002);
end $$;

select tests.count() as checks;
rollback;
