-- The life of a request: sending, claims, decisions, the second approval, proof, withdrawal, public look-up.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- sending
do $$
declare k text := gen_random_uuid(); a jsonb; b jsonb; n1 int; f record;
begin
  a := tests.act('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'nonprofits', array['x', 'y', 'x'])) || ')');
  perform tests.same('status', a ->> 'status', 'pending');
  perform tests.same('number shape', a ->> 'request_number' ~ '^REQ-[0-9]{3,}$', true);
  perform tests.check('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'nonprofits', array['x', 'y', 'x'], 'description', 'Something else entirely')) || ')', 'hint:key_reused');
  b := tests.act('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'nonprofits', array['x', 'y', 'x'])) || ')');
  perform tests.same('a repeat gives the same number', b ->> 'request_number', a ->> 'request_number');
  perform tests.same('a repeat says so', b ->> 'repeated', 'true');
  perform tests.same('a repeat changes nothing', (select description from public.requests where id = a ->> 'id'), 'We need food for two weeks.');
  perform tests.check('bob', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k)) || ')', 'hint:request_not_found');
  perform tests.same('doubles among the nonprofits fall away', (select count(*)::int from public.request_nonprofits where request_id = a ->> 'id'), 2);
  perform tests.same('one confirmation mail', tests.mails('alice@tests.example', '%we have your request%'), 1);
  perform tests.same('notification', (select count(*)::int from public.notifications where user_id = tests.id('alice') and title = 'Request Submitted'), 1);
  perform tests.same('staff of both hear of it, volunteers do not', (select count(*)::int from public.notifications where request_id = a ->> 'id' and title like 'New request%'), 6);
  perform tests.same('amount text', (select amount from public.requests where id = a ->> 'id'), '$250');
  -- Every rule of section 5 applies here too.
  for f in select * from (values
    ('{"category_id": null}', 'category_id', 'Please select a category'), ('{"category_id": "nope"}', 'category_id', 'Please select a category'),
    ('{"nonprofits": []}', 'nonprofits', 'Please select at least one nonprofit'), ('{"nonprofits": ["nope"]}', 'nonprofits', 'One of the chosen nonprofits is no longer available. Please choose another.'),
    ('{"description": "too short"}', 'description', 'Description must be at least 10 characters'), ('{"description": "            x"}', 'description', 'Description must be at least 10 characters'),
    ('{"amount": "lots"}', 'amount', 'Amount must be a number'), ('{"amount": "-5"}', 'amount', 'Amount must be a number'),
    ('{"contact_consent": false}', 'contact_consent', 'You must agree to be contacted'), ('{"contact_consent": "yes"}', 'contact_consent', 'You must agree to be contacted'),
    ('{"first_name": "A"}', 'first_name', 'First name is required'), ('{"last_name": " "}', 'last_name', 'Last name is required'),
    ('{"email": "nobody"}', 'email', 'Please enter a valid email address'), ('{"phone": "1234"}', 'phone', 'Phone number is required'),
    ('{"address": "1 A"}', 'address', 'Street address is required'), ('{"city": "P"}', 'city', 'City is required'),
    ('{"state": "M"}', 'state', 'State/Province is required'), ('{"postal_code": "0"}', 'postal_code', 'Postal/ZIP code is required')) t (change, field, message)
  loop
    perform tests.check('anon', 'select public.submit_request(' || tests.answers(f.change::jsonb) || ')', 'hint:validation_failed');
    begin
      perform public.submit_request(trim(both '''' from tests.answers(f.change::jsonb))::jsonb);
    exception when others then
      declare d text; begin
        get stacked diagnostics d = pg_exception_detail;
        perform tests.same('message at ' || f.field, d::jsonb -> 'fields' ->> f.field, f.message);
        perform tests.same('only ' || f.field, (select count(*)::int from jsonb_object_keys(d::jsonb -> 'fields')), 1);
      end;
    end;
  end loop;
  perform tests.check('anon', 'select public.submit_request(' || tests.answers('{"nonprofits": ["a", "b", "c", "d"]}') || ')', 'hint:too_many_nonprofits');
  perform tests.check('anon', 'select public.submit_request(' || tests.answers('{"key": "no uuid"}') || ')', 'hint:validation_failed');
  perform tests.check('anon', 'select public.submit_request(' || tests.answers('{"amount": ""}') || ')', 'rows=1');
  perform tests.check('anon', 'select public.submit_request(' || tests.answers('{"amount": "$1,200.50"}') || ')', 'rows=1');
  -- A page that says what it saw of a draft does not overwrite what was saved elsewhere since.
  a := tests.act('alice', 'select public.save_draft(''{"id": "r-draft", "description": "Typed on the phone."}'')');
  perform tests.same('the state after the save', (a ->> 'updated_at')::timestamptz, (select updated_at from public.requests where id = 'r-draft'));
  perform set_config('session_replication_role', 'replica', true);  -- without the trigger that dates every update
  update public.requests set updated_at = now() - interval '1 hour' where id = 'r-draft';
  perform set_config('session_replication_role', 'origin', true);
  foreach n1 in array array[1, 2] loop
    perform tests.check('alice', (array['select public.save_draft(''{"id": "r-draft", "description": "Typed on the laptop.", "seen": "2026-01-01T00:00:00Z"}'')',
      'select public.submit_request(' || tests.answers('{"draft_id": "r-draft", "seen": "2026-01-01T00:00:00Z"}') || ')'])[n1], 'hint:draft_changed');
  end loop;
  perform tests.same('nothing was saved', (select description from public.requests where id = 'r-draft'), 'Typed on the phone.');
  perform tests.check('alice', 'select public.save_draft(''{"id": "r-draft", "description": "Typed on the phone.", "step": 4, "seen": "2026-01-01T00:00:00Z"}'')', 'rows=1');
  perform tests.check('alice', format('select public.save_draft(%L)', jsonb_build_object('id', 'r-draft', 'description', 'Typed on the laptop.', 'seen', now() - interval '1 hour')), 'rows=1');
  perform tests.check('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('draft_id', 'r-draft', 'seen', now() - interval '1 hour')) || ')', 'rows=1');
  perform tests.check('alice', 'select public.submit_request(' || tests.answers('{"draft_id": "r-draft"}') || ')', 'rows=1');
  -- A draft becomes the request.
  a := tests.act('alice', 'select public.save_draft(''{"id": "r-draft", "description": "We need food for two weeks.", "amount": "abc", "step": 4}'')');
  perform tests.same('a draft may be wrong', (select amount from public.requests where id = 'r-draft'), 'abc');
  perform tests.check('bob', 'select public.save_draft(''{"id": "r-draft"}'')', 'hint:request_not_found');
  a := tests.act('alice', 'select public.submit_request(' || tests.answers('{"draft_id": "r-draft"}') || ')');
  perform tests.same('the draft is the request', a ->> 'id', 'r-draft');
  perform tests.check('alice', 'select public.save_draft(''{"id": "r-draft"}'')', 'hint:request_already_decided');
  perform tests.check('alice', 'delete from public.requests where id = ''r-draft''', 'rows=0');
end $$;

-- Claims: the first organization that acts gets the request.
do $$
declare r jsonb;
begin
  perform tests.same('nobody opened it', tests.act('anon', 'select public.request_status(''req-900001'')') ->> 'status', 'pending');
  r := tests.act('employee', 'select public.open_request(''REQ-900001'', ''x'')');
  perform tests.same('employees read but do not decide', r -> 'can', '{"approve": false, "deny": false, "ask_info": false, "second_approval": false}');
  perform tests.same('opened', tests.act('anon', 'select public.request_status(''900001'')') ->> 'status', 'in_review');
  perform tests.same('look-up tells nothing of the person', (select count(*)::int from jsonb_object_keys(tests.act('anon', 'select public.request_status(''REQ-900001'')'))), 10);
  perform tests.check('anon', 'select public.request_status(''12'')', 'hint:validation_failed');
  perform tests.same('unknown number', tests.act('anon', 'select public.request_status(''REQ-999999'')'), '{"found": false}');
  perform tests.act('manager', 'select public.request_more_info(''r-ax'', ''x'', ''The letter, please'')');
  perform tests.same('waits for the person', tests.act('anon', 'select public.request_status(''REQ-900001'')') ->> 'status', 'pending');
  perform tests.check('manager_y', 'select public.approve_request(''r-ax'', ''y'', 10)', 'hint:request_already_decided');
  perform tests.same('nothing of the person', tests.act('manager_y', 'select public.open_request(''r-ax'', ''y'')') #>> '{request,email}', null::text);
  perform tests.check('manager_y', 'select * from storage.objects where bucket_id = ''request-documents'' and name = ''r-ax/a.pdf''', 'rows=0');
  perform tests.check('manager', 'select * from storage.objects where bucket_id = ''request-documents'' and name = ''r-ax/a.pdf''', 'rows=1');
  -- What one organization writes to the person is visible only to the person and to its own staff.
  perform tests.same('its own staff read the question', tests.act('employee', 'select public.open_request(''r-ax'', ''x'')')::text like '%The letter, please%', true);
  perform tests.same('the person reads it', tests.act('alice', 'select public.request_detail(''r-ax'')')::text like '%The letter, please%', true);
  perform tests.same('another organization does not', tests.act('manager_y', 'select public.open_request(''r-ax'', ''y'')')::text like '%The letter, please%', false);
  perform tests.check('manager_y', 'select * from public.incoming_requests where request_id = ''r-ax'' and status = ''taken'' and requester_name is null', 'rows=1');
  perform tests.same('the other sees a line', tests.act('manager_y', 'select public.open_request(''r-ax'', ''y'')') ->> 'visible', 'false');
  perform tests.same('asked by mail', tests.mails('alice@tests.example', '%one more thing%'), 1);
  -- The same question again, after a lost answer, is the same one.
  perform tests.same('asked again', tests.act('manager', 'select public.request_more_info(''r-ax'', ''x'', '' The letter, please'')'), '{"status": "pending", "needs_more_proof": true}');
  perform tests.same('one question', (select count(*)::int from public.request_events where request_id = 'r-ax' and type = 'info_requested'), 1);
  perform tests.same('one mail', tests.mails('alice@tests.example', '%one more thing%'), 1);
  perform tests.same('one notification', (select count(*)::int from public.notifications where request_id = 'r-ax' and code = 'asked'), 1);
  -- the answer
  perform tests.check('bob', 'select public.answer_request_info(''r-ax'', ''hi'')', 'hint:request_not_found');
  perform tests.check('alice', 'select public.answer_request_info(''r-ax'', ''  '')', 'hint:nothing_to_send');
  insert into storage.objects (bucket_id, name) values ('request-documents', 'r-ax/more.pdf');
  perform tests.check('alice', 'insert into storage.objects (bucket_id, name) values (''request-documents'', ''r-ax/other.pdf'')', 'rows=1');
  perform tests.run('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-ax'', ''more.pdf'', ''r-ax/more.pdf'', ''application/pdf'', 9)');
  perform tests.same('kind', (select kind from public.request_documents where path = 'r-ax/more.pdf'), 'additional');
  perform tests.act('alice', 'select public.answer_request_info(''r-ax'', ''Here it is'')');
  perform tests.check('alice', 'select public.answer_request_info(''r-ax'', ''again'')', 'hint:request_already_decided');
  perform tests.same('no longer waits', (select needs_more_proof from public.requests where id = 'r-ax'), false);
  perform tests.same('staff hear', (select count(*)::int from public.notifications where title like '%was answered' and user_id = tests.id('manager')), 1);
  -- A claimed request that is denied goes back to the others.
  perform tests.check('manager', 'select public.deny_request(''r-ax'', ''x'', '' '')', 'hint:validation_failed');
  perform tests.check('manager', 'select public.deny_request(''r-ax'', ''x'', ''no'', ''made_up'')', 'hint:validation_failed');
  r := tests.act('manager', 'select public.deny_request(''r-ax'', ''x'', ''Secret remark'', ''funding_limit'')');
  perform tests.same('others go on', r, '{"status": "pending", "part": "denied", "others_open": 1}');
  perform tests.same('without the question of the first', (select pending_notes from public.requests where id = 'r-ax'), null::text);
  update public.requests set pending_notes = 'The letter, please' where id = 'r-ax';
  perform tests.same('which another organization is not told', tests.act('manager_y', 'select public.staff_request(''r-ax'', ''y'')') #>> '{request,pending_notes}', null::text);
  perform tests.check('manager_y', 'select * from public.incoming_requests where request_id = ''r-ax'' and requester_name = ''Alice Tester''', 'rows=1');
  perform tests.check('manager', 'select public.approve_request(''r-ax'', ''x'', 10)', 'hint:request_already_decided');
  r := tests.act('admin_y', 'select public.deny_request(''r-ax'', ''y'', ''Sorry'', ''outside_area'')');
  perform tests.same('the last denial declines', r ->> 'status', 'declined');
  r := tests.act('anon', 'select public.request_status(''REQ-900001'')');
  perform tests.same('the public reason is from the list', r ->> 'reason', 'Outside the area served');
  perform tests.same('free text stays private', r::text like '%Sorry%', false);
  perform tests.same('the owner reads it', tests.act('alice', 'select public.request_detail(''r-ax'')') #>> '{request,denial_reason}', 'Sorry');
  perform tests.check('alice', 'select public.withdraw_request(''r-ax'')', 'hint:request_already_decided');
  -- sent again
  r := tests.act('alice', 'select public.resubmit_request(''r-ax'')');
  perform tests.same('a new draft with its documents', (select count(*)::int from public.request_documents where request_id = r ->> 'draft_id'), 2);
  perform tests.same('once', tests.act('alice', 'select public.resubmit_request(''r-ax'')') ->> 'draft_id', r ->> 'draft_id');
  perform tests.same('consent is asked again', (select contact_consent from public.requests where id = r ->> 'draft_id'), false);
end $$;

-- approval: budget, second approval, amounts
do $$
declare r jsonb; d text; q jsonb; used numeric;
begin
  q := tests.act('alice', 'select public.submit_request(' || tests.answers('{"nonprofits": ["x"]}') || ')');
  foreach d in array array['0', '-1', '1.001', '10000000', '''NaN''', 'null'] loop
    perform tests.check('manager', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', ' || d || ')', 'hint:invalid_amount');
  end loop;
  perform tests.check('manager', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', 351)', 'hint:over_budget');
  perform tests.check('manager', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', 351, true)', 'rows=1');
  perform tests.act('admin', 'select public.set_second_approval(''x'', 100)');
  r := tests.act('manager', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', 120)');
  perform tests.same('needs a second', r ->> 'status', 'processing');
  -- The owner learns neither who gave the first approval nor the amount; staff do.
  r := tests.act('alice', 'select public.request_detail(' || quote_literal(q ->> 'id') || ')');
  perform tests.same('no amount for the owner', r #>> '{request,amount_approved}', null::text);
  perform tests.same('no approver for the owner', r::text like '%' || tests.id('manager') || '%', false);
  perform tests.check('alice', 'select * from public.my_requests where amount_approved is not null and status = ''processing''', 'rows=0');
  r := tests.act('employee', 'select public.open_request(' || quote_literal(q ->> 'id') || ', ''x'')');
  perform tests.same('staff see both', (r #>> '{request,amount_approved}') || ' by ' || (r ->> 'first_approver'), '120.00 by manager');
  perform tests.check('employee', 'select * from public.incoming_requests where status = ''processing'' and amount_approved = 120', 'rows=1');
  perform tests.same('nothing granted yet', (select approved from private.budget_totals('x')), 250.00);
  perform tests.check('manager', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', 120)', 'hint:second_approval_by_other');
  perform tests.check('manager2', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', 130)', 'hint:amount_differs');
  perform tests.check('manager', 'select public.request_more_info(' || quote_literal(q ->> 'id') || ', ''x'', ''more'')', 'hint:request_already_decided');
  perform tests.check('manager2', 'select public.deny_request(' || quote_literal(q ->> 'id') || ', ''x'', ''no'')', 'rows=1');
  r := tests.act('manager2', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', null)');
  perform tests.same('approved', r, '{"status": "approved", "amount": "$120", "second_approval_needed": false}');
  perform tests.same('granted', (select approved from private.budget_totals('x')), 370.00);
  perform tests.same('mail', tests.mails('alice@tests.example', '%is approved%'), 1);
  perform tests.same('amount text is the grant', (select amount from public.requests where id = q ->> 'id'), '$120');
  begin
    perform tests.become('admin');
    perform public.approve_request(q ->> 'id', 'x', 5);
    raise exception 'a decided request was approved again';
  exception when sqlstate 'PT409' then
    declare det text; msg text; begin
      get stacked diagnostics det = pg_exception_detail, msg = message_text;
      perform set_config('role', 'none', true);
      perform tests.same('a stale decision says so', msg, 'This request has already been approved.');
      perform tests.same('and carries the state', det::jsonb ->> 'status', 'approved');
    end;
  end;
  perform tests.same('one Approval', (select count(*)::int from public.budget_transactions where request_id = q ->> 'id'), 1);
  -- payouts
  perform tests.check('manager', 'select public.record_payout(' || quote_literal(q ->> 'id') || ', 120.01)', 'hint:payout_exceeds_grant');
  r := tests.act('manager', 'select public.record_payout(' || quote_literal(q ->> 'id') || ', 70.50)');
  perform tests.same('outstanding', (r ->> 'outstanding')::numeric, 49.5);
  perform tests.check('manager', 'select public.record_payout(' || quote_literal(q ->> 'id') || ', 50)', 'hint:payout_exceeds_grant');
  perform tests.check('manager', 'select public.record_payout(' || quote_literal(q ->> 'id') || ', 49.50)', 'rows=1');
  perform tests.check('service', 'insert into public.budget_transactions (nonprofit_id, type, amount, request_id) values (''x'', ''Payout'', 60, ' || quote_literal(q ->> 'id') || ')', 'hint:payout_exceeds_grant');
  perform tests.check('manager', 'select public.record_payout(''r-ax'', 1)', 'hint:request_not_found');
  -- State transitions are enforced for every caller.
  perform tests.check('service', 'update public.requests set status = ''pending'' where id = ' || quote_literal(q ->> 'id'), 'hint:status_transition');
  perform tests.check('service', 'update public.requests set status = ''draft'' where id = ''r-by''', 'hint:status_transition');
  -- Dashboards show sums.
  r := tests.act('alice', 'select public.requester_dashboard()');
  perform tests.same('aid received', (r ->> 'total_aid_received')::numeric, 370);
  r := tests.act('manager', 'select public.nonprofit_budget(''x'')');
  perform tests.same('remaining', (r ->> 'remainingAvailable')::numeric, 230);
  perform tests.same('utilization', (r ->> 'utilization')::numeric, 37);
  -- withdrawal
  q := tests.act('alice', 'select public.submit_request(' || tests.answers('{"nonprofits": ["x", "y"]}') || ')');
  perform tests.act('employee', 'select public.open_request(' || quote_literal(q ->> 'id') || ', ''x'')');
  perform tests.act('alice', 'select public.withdraw_request(' || quote_literal(q ->> 'id') || ')');
  perform tests.check('manager', 'select * from public.incoming_requests where status = ''withdrawn''', 'rows=1');
  perform tests.check('manager_y', 'select * from public.incoming_requests where status = ''withdrawn''', 'rows=0');
  perform tests.same('withdrawn before they read it: told so, without a word of the person', tests.act('manager_y', 'select public.open_request(' || quote_literal(q ->> 'id') || ', ''y'')')
    - 'request' - 'own', '{"visible": false, "part": "withdrawn", "claimed_by_other": false, "decided_message": "This request has already been withdrawn."}'::jsonb);
  perform tests.check('manager', 'select public.approve_request(' || quote_literal(q ->> 'id') || ', ''x'', 5)', 'hint:request_already_decided');
  perform tests.same('look-up', tests.act('anon', 'select public.request_status(' || quote_literal(q ->> 'request_number') || ')') ->> 'status', 'withdrawn');
end $$;

-- Guests: files, look-up, claims only with a proved address.
do $$
declare k text := gen_random_uuid(); s jsonb; s2 jsonb; g jsonb; code text; r jsonb; i int;
begin
  s := tests.act('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''Brief der Schule äö.pdf'', ''application/pdf'', 1000)');
  perform tests.check('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''a.svg'', ''image/svg+xml'', 1000)', 'hint:file_type');
  perform tests.check('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''a.pdf'', ''application/pdf'', 10485761)', 'hint:file_too_large');
  perform tests.check('anon', 'insert into storage.objects (bucket_id, name) values (''request-documents'', ' || quote_literal(s ->> 'path') || ')', 'refused');
  perform set_config('storage.operation', 'storage.object.sign_upload_url', true);
  perform tests.check('anon', 'insert into storage.objects (bucket_id, name) values (''request-documents'', ' || quote_literal(s ->> 'path') || ')', 'rows=1');
  perform tests.check('anon', 'insert into storage.objects (bucket_id, name) values (''request-documents'', ''guest/guessed.pdf'')', 'refused');
  perform set_config('storage.operation', '', true);
  perform tests.check('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'slots', jsonb_build_array(s ->> 'id'))) || ')', 'hint:document_missing');
  insert into storage.objects (bucket_id, name, created_at) values ('request-documents', s ->> 'path', now()), ('request-documents', 'guest/old.pdf', now() - interval '25 hours'), ('request-documents', 'guest/young.pdf', now() - interval '23 hours');
  for i in 1 .. 4 loop s2 := tests.act('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''b.pdf'', ''application/pdf'', 1000)'); end loop;
  perform tests.check('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''c.pdf'', ''application/pdf'', 1000)', 'hint:too_many_files');
  perform tests.same('a slot goes', tests.act('anon', 'select public.remove_guest_upload_slot(' || quote_literal(s2 ->> 'id') || ')'), 'true');
  g := tests.act('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'slots', jsonb_build_array(s ->> 'id'), 'email', 'Bob@tests.example')) || ')');
  perform tests.same('its name is kept', (select name from public.request_documents where request_id = g ->> 'id'), 'Brief der Schule äö.pdf');
  perform tests.check('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''c.pdf'', ''application/pdf'', 1000)', 'hint:request_already_decided');
  perform tests.same('swept: old and unsent alone', (select array_agg(n) from public.sweep_guest_files() n), array['guest/old.pdf']);
  -- Autoconfirm proves nothing.
  r := tests.act('bob', 'select public.claim_guest_requests()');
  perform tests.same('unproved', r, '{"proved": false, "claimed_requests": 0, "claimed_donations": 0}');
  -- Nor is a guest's request given to an account that only claims the address: anybody may have made it.
  perform tests.act('anon', 'select public.send_address_code(''bob@tests.example'')');
  r := tests.act('anon', 'select public.check_address_code(''bob@tests.example'', ' || quote_literal(substring(tests.mail_text('bob@tests.example', '%code') from 'Your code: ([0-9]{6})')) || ')');
  perform tests.same('the guest proved the address', r ->> 'ok', 'true');
  perform tests.same('no match with an unproved account', r -> 'matches', '[]'::jsonb);
  perform tests.check('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('email', 'bob@tests.example', 'account_id', tests.id('bob'), 'proof', r ->> 'proof')) || ')', 'hint:account_mismatch');
  perform tests.act('anon', 'select public.send_address_code(''bob@tests.example'')');
  perform tests.same('same answer for a stranger', tests.act('anon', 'select public.send_address_code(''nobody@tests.example'')'), '{"sent": true}');
  perform tests.same('the stranger is mailed as well', tests.mails('nobody@tests.example', '%code'), 1);
  code := substring(tests.mail_text('bob@tests.example', '%code') from 'Your code: ([0-9]{6})');
  perform tests.same('wrong code', tests.act('bob', 'select public.check_address_code(''bob@tests.example'', ''x'')'), '{"ok": false, "reason": "wrong_code", "tries_left": 4}');
  perform tests.same('a code is for its address', tests.act('stranger', 'select public.check_address_code(''nobody@tests.example'', ' || quote_literal(code) || ')') ->> 'ok',
    case when code = substring(tests.mail_text('nobody@tests.example', '%code') from 'Your code: ([0-9]{6})') then 'true' else 'false' end);
  r := tests.act('bob', 'select public.check_address_code(''BOB@tests.example'', ' || quote_literal(code) || ')');
  perform tests.same('claimed', r ->> 'claimed_requests', '1');
  perform tests.same('match', r #>> '{matches,0,id}', tests.id('bob')::text);
  perform tests.same('a code works once', tests.act('bob', 'select public.check_address_code(''bob@tests.example'', ' || quote_literal(code) || ')') ->> 'ok', 'false');
  perform tests.check('bob', 'select * from public.requests where id = ' || quote_literal(g ->> 'id'), 'rows=1');
  -- Account match without a session: the proof and the account must belong to the request's address.
  perform tests.check('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('email', 'alice@tests.example', 'account_id', tests.id('alice'), 'proof', r ->> 'proof')) || ')', 'hint:account_mismatch');
  perform tests.check('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('email', 'bob@tests.example', 'account_id', tests.id('bob'), 'proof', 'guess')) || ')', 'hint:account_mismatch');
  s := tests.act('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('email', 'bob@tests.example', 'account_id', tests.id('bob'), 'proof', r ->> 'proof')) || ')');
  perform tests.same('attached', (select user_id from public.requests where id = s ->> 'id'), tests.id('bob'));
  -- After five attempts the code is invalid.
  perform tests.act('anon', 'select public.send_address_code(''bob@tests.example'')');
  for i in 1 .. 5 loop r := tests.act('anon', 'select public.check_address_code(''bob@tests.example'', ''x'')'); end loop;
  code := substring(tests.mail_text('bob@tests.example', '%code') from 'Your code: ([0-9]{6})');
  perform tests.same('spent', tests.act('anon', 'select public.check_address_code(''bob@tests.example'', ' || quote_literal(code) || ')') ->> 'reason', 'expired');
end $$;

-- A session from a mailed link proves the address. A password, a text message or an older address does not.
do $$
declare v jsonb; m record; got boolean;
begin
  update private.account_addresses set since = now() - interval '1 hour' where user_id = tests.id('alice');
  for m in select * from (values
    ('password', 0, null, false), ('otp', 0, null, true), ('magiclink', 0, null, true), ('recovery', 0, '+1555', true), ('otp', 0, '+1555', false), ('otp', -7200, null, false), ('oauth', 0, null, false)) t (method, shift, phone, proves)
  loop
    update auth.users set phone = m.phone where id = tests.id('alice');
    update private.account_addresses set proved_at = null where user_id = tests.id('alice');
    perform set_config('request.jwt.claims', jsonb_build_object('role', 'authenticated', 'sub', tests.id('alice'),
      'amr', jsonb_build_array(jsonb_build_object('method', m.method, 'timestamp', extract(epoch from now())::bigint + m.shift)))::text, true);
    perform set_config('role', 'authenticated', true);
    v := public.claim_guest_requests();
    perform set_config('role', 'none', true);
    perform tests.same('session by ' || m.method || coalesce(' with a phone ' || m.phone, '') || ' ' || m.shift, (v ->> 'proved')::boolean, m.proves);
  end loop;
  update auth.users set email = 'alice2@tests.example' where id = tests.id('alice');
  perform tests.same('a new address is unproved', (select proved_at from private.account_addresses where user_id = tests.id('alice')), null::timestamptz);
end $$;

-- The look-up is rate limited.
do $$
declare i int;
begin
  update private.app_settings set value = '1' where key = 'rate_limit_factor';
  delete from private.rate_limits;
  perform set_config('request.headers', '{"x-forwarded-for": "203.0.113.9, 198.51.100.7"}', true);
  for i in 1 .. 30 loop perform tests.act('anon', 'select public.request_status(''REQ-900001'')'); end loop;
  perform tests.check('anon', 'select public.request_status(''REQ-900001'')', 'hint:rate_limited');
  perform set_config('request.headers', '{"x-forwarded-for": "198.51.100.7, 203.0.113.9"}', true);
  perform tests.check('anon', 'select public.request_status(''REQ-900001'')', 'rows=1');
end $$;

-- A stranger cannot keep a person from receiving codes for their own address.
do $$
declare i int; mine text; r jsonb;
  other_net constant text := '{"x-forwarded-for": "198.51.100.7"}'; own_net constant text := '{"x-forwarded-for": "203.0.113.50"}';
begin
  delete from private.rate_limits;
  update auth.users set email = 'alice@tests.example' where id = tests.id('alice');
  -- One person signed out and one signed in request their codes.
  perform set_config('request.headers', own_net, true);
  perform tests.act('anon', 'select public.send_address_code(''guest@tests.example'')');
  mine := substring(tests.mail_text('guest@tests.example', '%code') from 'Your code: ([0-9]{6})');
  -- A stranger requests codes for the same address until refused. The owner's code stays valid with all its attempts.
  perform set_config('request.headers', other_net, true);
  for i in 1 .. 5 loop perform tests.act('anon', 'select public.send_address_code(''guest@tests.example'')'); end loop;
  perform tests.check('anon', 'select public.send_address_code(''guest@tests.example'')', 'hint:rate_limited');
  perform tests.check('stranger', 'select public.send_address_code(''guest@tests.example'')', 'hint:rate_limited');
  perform tests.check('anon', 'select public.send_address_code(''someone.else@tests.example'')', 'rows=1');
  for i in 1 .. 5 loop r := tests.act('anon', 'select public.check_address_code(''guest@tests.example'', ''x'')'); end loop;
  perform tests.same('the stranger''s own tries are spent', r ->> 'reason', 'expired');
  perform tests.same('another''s code is not the stranger''s to try', tests.act('anon', 'select public.check_address_code(''guest@tests.example'', ' || quote_literal(mine) || ')') ->> 'ok', 'false');
  perform set_config('request.headers', own_net, true);
  perform tests.check('anon', 'select public.send_address_code(''guest@tests.example'')', 'rows=1');
  perform tests.same('the person''s code is good', tests.act('anon', 'select public.check_address_code(''guest@tests.example'', ' || quote_literal(mine) || ')') ->> 'ok', 'true');
  -- From many networks: the strangers' limit for an address is reached, the account's own is not.
  for i in 1 .. 3 loop
    perform set_config('request.headers', jsonb_build_object('x-forwarded-for', '192.0.2.' || i)::text, true);
    for i in 1 .. 5 loop perform tests.act('stranger', 'select public.send_address_code(''alice@tests.example'')'); end loop;
  end loop;
  perform set_config('request.headers', '{"x-forwarded-for": "192.0.2.9"}', true);
  perform tests.check('stranger', 'select public.send_address_code(''alice@tests.example'')', 'hint:rate_limited');
  for i in 1 .. 6 loop perform tests.act('alice', 'select public.send_address_code()'); end loop;
  perform tests.check('alice', 'select public.send_address_code()', 'hint:rate_limited');
  mine := substring(tests.mail_text('alice@tests.example', '%code') from 'Your code: ([0-9]{6})');
  perform tests.same('and proves it', tests.act('alice', 'select public.check_address_code(''alice@tests.example'', ' || quote_literal(mine) || ')') ->> 'ok', 'true');
  -- One household is one network, also under IPv6.
  delete from private.rate_limits;
  for i in 1 .. 5 loop
    perform set_config('request.headers', jsonb_build_object('x-forwarded-for', '2001:db8:1:2::' || i)::text, true);
    perform tests.act('anon', 'select public.send_address_code(''guest@tests.example'')');
  end loop;
  perform set_config('request.headers', '{"x-forwarded-for": "2001:db8:1:2:ffff::1"}', true);
  perform tests.check('anon', 'select public.send_address_code(''guest@tests.example'')', 'hint:rate_limited');
  perform set_config('request.headers', '{"x-forwarded-for": "2001:db8:1:3::1"}', true);
  perform tests.check('anon', 'select public.send_address_code(''guest@tests.example'')', 'rows=1');
  perform set_config('request.headers', '', true);
end $$;

-- An address gets a limited number of mails per day, whoever requests them.
do $$
declare who text;
  pledge text := 'select public.pledge_donation(jsonb_build_object(''nonprofit_id'', ''x'', ''amount'', ''5'', ''email'', ''Victim@tests.example'', ''key'', gen_random_uuid()))';
begin
  delete from private.rate_limits;
  foreach who in array array['alice', 'bob', 'donor', 'stranger', 'admin', 'manager', 'manager2', 'employee', 'volunteer', 'gone'] loop
    perform tests.act(who, pledge);
    perform tests.act(who, 'select public.submit_request(' || tests.answers('{"email": "victim@tests.example"}') || ')');
  end loop;
  perform tests.check('admin_y', pledge, 'hint:rate_limited');
  perform tests.check('admin_y', 'select public.submit_request(' || tests.answers('{"email": "victim@tests.example"}') || ')', 'hint:rate_limited');
  perform tests.check('admin_y', 'select public.submit_request(' || tests.answers('{"email": "admin_y@tests.example"}') || ')', 'rows=1');
end $$;

-- A person may have fifty drafts, however they are created.
do $$
declare
  post constant text := 'insert into public.requests (id, user_id, description) select gen_random_uuid(), ' || quote_literal(tests.id('stranger')) || ', ''half'' from generate_series(1, %s)';
  own constant text := 'insert into public.requests (id, user_id) values (%L, ' || quote_literal(tests.id('stranger')) || ') on conflict (id) do update set description = ''again''';
  one text; sent jsonb;
begin
  delete from private.rate_limits;
  delete from public.requests where user_id = tests.id('stranger');
  sent := tests.act('stranger', 'select public.submit_request(' || tests.answers('{"email": "stranger@tests.example"}') || ')');
  perform tests.act('stranger', 'select public.withdraw_request(' || quote_literal(sent ->> 'id') || ')');
  perform tests.check('stranger', format(post, 50), 'rows=50');
  perform tests.check('stranger', format(post, 51), 'hint:too_many_drafts');
  perform tests.run('stranger', format(post, 49));
  one := tests.act('stranger', 'select public.save_draft(''{}'')') ->> 'id';
  perform tests.check('stranger', format(post, 1), 'hint:too_many_drafts');
  perform tests.check('stranger', 'select public.save_draft(''{}'')', 'hint:too_many_drafts');
  perform tests.check('stranger', 'select public.resubmit_request(' || quote_literal(sent ->> 'id') || ')', 'hint:too_many_drafts');
  -- Existing drafts can still be edited, another person has room, and a request can be sent.
  perform tests.check('stranger', format(own, one), 'rows=1');
  perform tests.check('stranger', 'select public.save_draft(''{"id": "' || one || '", "title": "Rent"}'')', 'rows=1');
  perform tests.check('stranger', format(own, gen_random_uuid()), 'hint:too_many_drafts');
  perform tests.check('bob', replace(format(post, 1), tests.id('stranger')::text, tests.id('bob')::text), 'rows=1');
  perform tests.check('bob', format(post, 1), 'refused');
  perform tests.check('stranger', 'select public.submit_request(' || tests.answers('{"email": "stranger@tests.example"}') || ')', 'rows=1');
  perform tests.run('stranger', format('delete from public.requests where id = %L', one));
  perform tests.check('stranger', format(post, 1), 'rows=1');
  perform tests.check('stranger', 'select public.resubmit_request(' || quote_literal(sent ->> 'id') || ')', 'rows=1');
end $$;

select tests.count() as checks;
rollback;
