-- Ten thousand requests at a hundred organizations: every page's query uses an index, whatever the policies add to it,
-- and reads only the rows of its own organization or person. Nothing here depends on time: PostgreSQL counts the rows
-- that a statement reads, including those inside functions.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- Five thousand more accounts, and strangers' rows in the tables of limits, codes and proofs.
insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
select '00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'authenticated', 'authenticated', 'account' || i || '@tests.example', 'x', now(), '{}', '{"full_name": "Some Body"}', now(), now()
from generate_series(1, 5000) i;
insert into private.rate_limits (key, window_start, hits) select 'look-up:' || i, now() - interval '1 hour', 1 from generate_series(1, 10000) i;
insert into private.rate_limits (key, window_start, hits) select 'look-up:' || i, now() - interval '3 days', 1 from generate_series(1, 5000) i;
insert into private.address_codes (email, asker, code_hash) select 'account' || i || '@tests.example', 'net:' || i, 'x' from generate_series(1, 10000) i;
insert into private.address_proofs (token_hash, email) select 'h' || i, 'account' || i || '@tests.example' from generate_series(1, 10000) i;

-- 98 more organizations. Every request goes to two of the hundred. Alice has one request in 500; x and y have one in
-- fifty each.
insert into public.nonprofits (id, name, legal_status, registration_number, employee_count, mission)
select 'o-' || i, 'Org ' || i, 'charity', i::text, 3, 'Help' from generate_series(2, 99) i;
create function pg_temp.organization(i int) returns text language sql immutable as $$
  select case i % 100 when 0 then 'x' when 1 then 'y' else 'o-' || i % 100 end
$$;
insert into public.requests (id, request_number, user_id, category_id, description, amount, amount_requested, amount_approved, status, nonprofits, first_name, last_name, email, phone,
  address, city, state, postal_code, contact_consent, claimed_by, submitted_at, review_started_at, decided_at, denial_reason, denial_reason_code)
select 'many-' || i, 'REQ-' || 500000 + i, case when i % 500 = 0 then tests.id('alice') end, 't-cat', 'We need food for two weeks, number ' || i, '$250', 250, case when i % 3 = 0 then 250 end,
  case i % 3 when 0 then 'approved' when 1 then 'pending' else 'declined' end, array[pg_temp.organization(i), pg_temp.organization(i + 1)], 'First' || i % 50, 'Last' || i % 70, 'p' || i || '@tests.example', '12345',
  '1 Long Street', 'Portland', 'ME', '04101', true, case when i % 3 = 0 then pg_temp.organization(i) end, now() - i * interval '30 minutes', now(), case when i % 3 <> 1 then now() end,
  case when i % 3 = 2 then 'no' end, case when i % 3 = 2 then 'other' end
from generate_series(1, 10000) i;
insert into public.request_nonprofits (request_id, nonprofit_id, state, submitted_at)
select r.id, n, case when r.status = 'pending' then 'open' when r.status = 'declined' then 'denied' when n = r.claimed_by then 'claimed' else 'taken' end, r.submitted_at
from public.requests r, unnest(r.nonprofits) n where r.id like 'many-%';
insert into public.request_events (request_id, type, actor) select id, 'submitted', 'requester' from public.requests where id like 'many-%';
insert into storage.objects (bucket_id, name) select 'request-documents', id || '/a.pdf' from public.requests where id like 'many-%';
insert into public.request_documents (request_id, name, path, mime_type, size_bytes) select id, 'a.pdf', id || '/a.pdf', 'application/pdf', 9 from public.requests where id like 'many-%';
insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, date)
select claimed_by, 'Approval', 250, 'Test Food', id, decided_at from public.requests where id like 'many-%' and status = 'approved';
insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, received_at)
select pg_temp.organization(i), case when i % 500 = 0 then tests.id('donor') end, 'Giver', 'giver' || i || '@tests.example', 5, 'received', now() - i * interval '1 hour' from generate_series(1, 10000) i;
insert into public.notifications (user_id, title, message, date, read)
select tests.id((array['alice', 'bob', 'donor', 'stranger', 'admin', 'manager', 'employee', 'admin_y', 'manager_y', 'volunteer'])[1 + i % 10]), 't', 'm', now() - i * interval '1 minute', i % 7 > 0 from generate_series(1, 10000) i;
insert into public.donor_messages (id, nonprofit_id, subject, message, created_at)
select 'many-' || i, pg_temp.organization(i), 'Winter pantry', 'Thank you for giving', now() - i * interval '1 hour' from generate_series(1, 10000) i;
insert into public.donor_message_recipients (message_id, donor_user_id, donor_email)
select 'many-' || i, case when i % 500 = 0 then tests.id('donor') end, 'giver' || i || '@tests.example' from generate_series(1, 10000) i;
insert into public.donor_message_replies (message_id, nonprofit_id, from_name, subject, message, created_at)
select 'many-' || i, pg_temp.organization(i), 'Giver', 'Re: Winter pantry', 'Gladly', now() - i * interval '1 hour' from generate_series(1, 10000) i;
-- The setting of the embedded cluster and of PostgreSQL on SSDs: an index lookup costs little more than a sequential
-- page.
set local random_page_cost = 1.1;
analyze public.requests, public.request_nonprofits, public.request_events, public.request_documents, public.budget_transactions, public.donations, public.notifications,
  public.donor_messages, public.donor_message_recipients, public.donor_message_replies, public.nonprofits, storage.objects, auth.users, public.profiles, public.user_roles,
  private.account_addresses, private.rate_limits, private.address_codes, private.address_proofs;

-- Rows that this transaction has read so far in the large tables: by sequential scans, and by index.
create function pg_temp.rows_read(out scanned bigint, out fetched bigint) language sql as $$
  select sum(s.seq_tup_read), sum(s.idx_tup_fetch) from pg_stat_xact_user_tables s
  where s.schemaname in ('public', 'private', 'storage', 'auth') and s.relname in ('users', 'profiles', 'user_roles', 'account_addresses', 'rate_limits', 'address_codes', 'address_proofs', 'requests', 'request_nonprofits', 'request_events', 'request_documents', 'budget_transactions', 'donations', 'notifications',
    'donor_messages', 'donor_message_recipients', 'donor_message_replies', 'objects')
$$;

-- Runs a statement as a person. It may scan none of these tables sequentially and fetch at most `most` of their rows.
create function pg_temp.reads(who text, statement text, most bigint) returns void language plpgsql as $$
declare before record; after record; line text; plan text := '';
begin
  before := pg_temp.rows_read();
  perform tests.become(who);
  execute statement;
  perform set_config('role', 'none', true);
  after := pg_temp.rows_read();
  perform tests.counted();
  if after.scanned > before.scanned or after.fetched - before.fetched > most then
    perform tests.become(who);
    for line in execute 'explain ' || statement loop plan := plan || line || E'\n'; end loop;
    perform set_config('role', 'none', true);
    raise exception 'as %: % scanned % rows and fetched % (at most %): %', who, statement, after.scanned - before.scanned, after.fetched - before.fetched, most, plan;
  end if;
end $$;

-- A page with its exact count, as the REST API queries it.
create function pg_temp.page(columns text, source text, conditions text, ordering text, start int default 0) returns text language sql as $$
  select format('with page as (select %1$s from %2$s where %3$s order by %4$s limit 20 offset %5$s), counted as (select 1 from %2$s where %3$s)
    select coalesce(json_agg(p), ''[]''), (select count(*) from counted) from page p', columns, source, conditions, ordering, start)
$$;

do $$
declare
  alice text := quote_literal(tests.id('alice')); q text; result jsonb; before record; after record;
  line constant text := 'request_id, nonprofit_id, request_number, category, amount, amount_requested, amount_approved, status, part, needs_more_proof, opened, submitted_at, updated_at, waiting_days, requester_name';
  own constant text := 'id, request_number, category, amount, amount_requested, amount_approved, status, needs_more_proof, nonprofit_names, submitted_at';
begin
  -- A requester: 22 requests of 10,003.
  foreach q in array array['true', 'search_text like ''%number 500%''', 'status = ''pending''', 'category = ''Test Food'' and submitted_at >= now() - interval ''60 days'' and submitted_at < now()'] loop
    perform pg_temp.reads('alice', pg_temp.page(own, 'public.my_requests', q, 'needs_more_proof desc, submitted_at desc, id'), 300);
  end loop;
  perform pg_temp.reads('alice', pg_temp.page(own, 'public.my_requests', 'true', 'needs_more_proof desc, submitted_at desc, id', 20), 300);
  perform pg_temp.reads('alice', 'select id, description, category_id, amount, updated_at, title from public.requests where user_id = ' || alice || ' and status = ''draft'' order by updated_at desc', 50);
  perform pg_temp.reads('alice', 'select first_name, last_name, email, phone from public.requests where user_id = ' || alice || ' and status <> ''draft'' order by submitted_at desc limit 1', 50);
  perform pg_temp.reads('alice', 'select public.request_detail(''many-500'')', 50);
  perform pg_temp.reads('alice', 'select public.requester_dashboard()', 400);
  perform pg_temp.reads('alice', 'select public.me()', 1500);
  -- Child rows of all requests: only the owner's, by index.
  perform pg_temp.reads('alice', 'select id, type, note from public.request_events', 200);
  perform pg_temp.reads('alice', 'select id, name from public.request_documents', 200);
  perform pg_temp.reads('alice', 'select request_id, state from public.request_nonprofits', 200);
  perform pg_temp.reads('alice', 'select id from storage.objects where bucket_id = ''request-documents'' and name = ''many-500/a.pdf''', 50);
  perform pg_temp.reads('alice', 'select id, type, title, message, link, date, read from public.notifications where user_id = ' || alice || ' order by date desc, id limit 100', 300);
  perform pg_temp.reads('alice', 'select count(*) from public.notifications where user_id = ' || alice || ' and not read', 300);
  perform pg_temp.reads('anon', 'select public.request_status(''REQ-500007'')', 20);
  -- Staff of x: 202 requests of 10,003. A page and its count each read them twice, as parts and as requests.
  foreach q in array array['waiting_days desc nulls last, submitted_at desc, request_id', 'submitted_at desc nulls last, request_id', 'category nulls last, request_id', 'amount_requested desc nulls last, request_id'] loop
    perform pg_temp.reads('manager', pg_temp.page(line, 'public.incoming_requests', 'nonprofit_id = ''x''', q), 1000);
  end loop;
  foreach q in array array['status = ''pending''', 'search_text ilike ''%last42%''', 'status = ''approved'' and search_text ilike ''%req-5000%'''] loop
    perform pg_temp.reads('employee', pg_temp.page(line, 'public.incoming_requests', 'nonprofit_id = ''x'' and ' || q, 'waiting_days desc nulls last, submitted_at desc, request_id', 20), 1000);
  end loop;
  perform pg_temp.reads('manager', 'select count(*) from public.incoming_requests where nonprofit_id = ''x'' and status in (''pending'', ''processing'') and not needs_more_proof', 600);
  perform pg_temp.reads('manager', 'select public.incoming_request_counts(''x'')', 600);
  foreach q in array array['', ', sort => ''date'', descending => true', ', sort => ''category'', status => ''pending''', ', sort => ''amount'', page => 3'] loop
    perform pg_temp.reads('manager', 'select public.incoming_page(''x''' || q || ')', 700);
  end loop;
  perform pg_temp.reads('manager', 'select public.incoming_page(''x'', search => ''last42'')', 700);
  perform pg_temp.reads('manager', 'select public.nonprofit_dashboard(''x'')', 4000);
  perform pg_temp.reads('manager', 'select public.nonprofit_budget(''x'')', 2000);
  perform pg_temp.reads('employee', 'select public.open_request(''many-100'', ''x'')', 3000);
  perform pg_temp.reads('manager', 'select id from storage.objects where bucket_id = ''request-documents'' and name = ''many-100/a.pdf''', 50);
  perform pg_temp.reads('manager', pg_temp.page('request_id, request_number, category, requester_name, granted, paid, outstanding, approved_at', 'public.approved_grants', 'nonprofit_id = ''x''', 'outstanding desc, request_id'), 1500);
  perform pg_temp.reads('manager', pg_temp.page('id, type, amount, date, category, request_id, request_number, donor', 'public.budget_transactions', 'nonprofit_id = ''x''', 'date desc, id'), 1000);
  perform pg_temp.reads('manager', pg_temp.page('id, donor_name, donor_email, amount, status, pledged_at, received_at', 'public.donations', 'nonprofit_id = ''x''', 'waits desc, dated desc, id'), 1000);
  perform pg_temp.reads('manager', pg_temp.page('id, "from", subject, preview, message, date, unread', 'public.donor_inbox', 'nonprofit_id = ''x''', 'date desc, id'), 1000);
  perform pg_temp.reads('manager', 'select count(*) from public.donor_inbox where nonprofit_id = ''x'' and unread', 1000);
  perform pg_temp.reads('manager', pg_temp.page('id, subject, message, recipient_count, created_at', 'public.donor_messages', 'nonprofit_id = ''x''', 'created_at desc, id'), 1000);
  perform pg_temp.reads('manager', 'select public.active_donor_count(''x'')', 1000);
  perform pg_temp.reads('manager', 'select public.approve_request(''many-100'', ''x'', 5, true)', 1000);
  -- Sending, notifications, proofs: one or a few rows of each table.
  foreach q in array array['submit_request(' || tests.answers('{"nonprofits": ["x", "y"], "email": "account7@tests.example"}') || ')', 'send_address_code(''account7@tests.example'')', 'check_address_code(''account7@tests.example'', ''1'')',
    'subscribe_newsletter(''account7@tests.example'')', 'team_invitation(''nope'')', 'pledge_donation(jsonb_build_object(''nonprofit_id'', ''x'', ''amount'', ''5'', ''email'', ''p@tests.example'', ''key'', gen_random_uuid()))'] loop
    perform pg_temp.reads('anon', 'select public.' || q, 100);
  end loop;
  perform pg_temp.reads('alice', 'select public.submit_request(' || tests.answers() || ')', 200);
  perform pg_temp.reads('alice', 'select public.claim_guest_requests()', 100);
  perform pg_temp.reads('manager', 'select id from storage.objects where bucket_id = ''profile-photos'' and name = ' || quote_literal(tests.id('alice') || '/me.png'), 300);
  perform pg_temp.reads('admin', 'select public.record_donation(''x'', 5, ''Giver'', ''account7@tests.example'')', 100);
  perform pg_temp.reads('admin', 'update public.nonprofit_team_members set role = ''manager'' where id = ''m-employee''', 100);
  -- Donor and visitor.
  perform pg_temp.reads('donor', 'select public.donor_dashboard()', 8000);
  perform pg_temp.reads('donor', pg_temp.page('id, subject, date, unread', 'public.my_donor_messages', 'true', 'date desc'), 300);
  perform pg_temp.reads('anon', pg_temp.page('id, name, mission, location, category, average_response_time_days', 'public.nonprofits', 'status = ''active''', 'name'), 10);
  perform tests.same('every one is counted', (tests.act('manager', 'select public.incoming_request_counts(''x'')') ->> 'all')::int, 204);
  -- With two thousand more open requests the dashboard reads few rows, and names the one that has waited longest, except those that colleagues look after.
  insert into public.requests (id, request_number, category_id, description, amount, status, nonprofits, first_name, last_name, email, phone, address, city, state, postal_code,
    contact_consent, submitted_at)
  select 'wait-' || i, 'REQ-' || 600000 + i, 't-cat', 'We need food for two weeks.', '$250', 'pending', array['x'], 'First', 'Last', 'w' || i || '@tests.example', '12345',
    '1 Long Street', 'Portland', 'ME', '04101', true, now() - interval '1 year' + i * interval '1 minute' from generate_series(1, 2000) i;
  insert into public.request_nonprofits (request_id, nonprofit_id, state, submitted_at, assigned_to)
  select r.id, 'x', 'open', r.submitted_at, case when r.id in ('wait-1', 'wait-2') then 'm-employee' end from public.requests r where r.id like 'wait-%';
  perform private.add_up_tally();
  analyze public.requests, public.request_nonprofits;
  perform tests.same('the longest wait, of one''s own and nobody''s', tests.act('manager', 'select public.nonprofit_dashboard(''x'')') #>> '{longest_waiting,request_number}', 'REQ-600003');
  perform pg_temp.reads('manager', 'select public.nonprofit_dashboard(''x'')', 300);
  -- A common word is counted to a thousand, and its page is that of the list; one that is common only where the sample is taken is counted whole.
  result := tests.act('manager', 'select public.incoming_page(''x'', search => ''food'')');
  perform tests.same('a word of all requests', result - 'counts', tests.act('manager', 'select public.incoming_page(''x'')') - 'counts' || '{"total": 1000, "more": true}');
  result := tests.act('manager', 'select public.incoming_page(''x'', search => ''req-600'')');
  perform tests.same('a word of 999', jsonb_build_array(result -> 'total', result -> 'more', result #> '{rows,0,request_number}'), '[999, false, "REQ-600001"]'::jsonb);
  perform pg_temp.reads('manager', 'select public.incoming_page(''x'', search => ''food'')', 2500);
  -- No call deletes expired counters; the hourly job does.
  perform tests.same('expired counters after all these calls', (select count(*)::int from private.rate_limits r where r.window_start < now() - interval '2 days'), 5000);
  perform private.sweep();
  perform tests.same('expired counters after the hourly job', (select count(*)::int from private.rate_limits r where r.window_start < now() - interval '2 days'), 0);
  -- The measurement detects a sequential scan.
  before := pg_temp.rows_read();
  perform count(*) from public.requests r where r.description like '%never there%';
  after := pg_temp.rows_read();
  perform tests.same('rows of a scan', after.scanned - before.scanned, (select count(*) from public.requests));
end $$;

select tests.count() as checks;
rollback;
