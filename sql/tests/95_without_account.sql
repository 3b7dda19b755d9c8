-- A guest's complete way with number and mailed code, and refusals for everybody else.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

create function pg_temp.code_for(number text) returns text language sql as $$
  select substring(tests.mail_text('guest@tests.example', '% opens ' || number) from '\m([0-9]{6})\M')
$$;

do $$
declare a jsonb; b jsonb; id text; number text; code text; access text; other text; slot jsonb; calls text[]; q text;
begin
  a := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "guest@tests.example", "nonprofits": ["x", "y"]}') || ')');
  id := a ->> 'id'; number := a ->> 'request_number';
  perform tests.same('the confirmation leads to the code', tests.mail_text('guest@tests.example', '%we have your request%') ~ ('/open-request\?number=' || number), true);
  -- Requesting a code reveals nothing.
  perform tests.same('an unknown number', tests.act('anon', 'select public.send_request_code(''REQ-000999'')'), tests.act('anon', format('select public.send_request_code(%L)', number)));
  perform tests.same('one mail', tests.mails('guest@tests.example', '% opens ' || number), 1);
  code := pg_temp.code_for(number);
  perform tests.same('a wrong code', tests.act('anon', format('select public.check_request_code(%L, ''000000'')', number)), '{"ok": false, "reason": "wrong_code", "tries_left": 4}'::jsonb);
  foreach q in array array[number, lower(number), replace(number, '-', ' '), replace(number, '-', ''), replace(number, '-', '–'), replace(number, 'REQ-', '#'), replace(number, 'REQ-', ' 00')] loop
    perform tests.same('written ' || q, tests.act('anon', format('select public.request_status(%L)', q)) ->> 'request_number', number);
  end loop;
  foreach q in array array['REQ-', 'REQ-1-2', 'REQ 1 OR 1=1', number || 'x'] loop
    perform tests.same('not a number: ' || q, tests.act('anon', format('select public.request_status(%L)', q)) ->> 'found', 'false');
  end loop;
  perform tests.same('for an unknown number', tests.act('anon', format('select public.check_request_code(''REQ-000999'', %L)', code)) ->> 'ok', 'false');
  perform set_config('ferrobase.client_address', '203.0.113.7', true);
  perform tests.same('from another network', tests.act('anon', format('select public.check_request_code(%L, %L)', number, code)) ->> 'ok', 'false');
  perform set_config('ferrobase.client_address', '', true);
  a := tests.act('anon', format('select public.check_request_code(%L, %L)', lower(number), ' ' || code));
  perform tests.same('the right one', a ->> 'ok', 'true');
  access := a ->> 'access';
  perform tests.same('is good once', tests.act('anon', format('select public.check_request_code(%L, %L)', number, code)) ->> 'ok', 'false');
  -- Five attempts, then none.
  perform tests.act('anon', format('select public.send_request_code(%L)', number));
  for i in 1 .. 5 loop b := tests.act('anon', format('select public.check_request_code(%L, ''000000'')', number)); end loop;
  perform tests.same('used up', b, '{"ok": false, "reason": "expired", "tries_left": 0}'::jsonb);
  perform tests.same('the right one as well', tests.act('anon', format('select public.check_request_code(%L, %L)', number, pg_temp.code_for(number))) ->> 'ok', 'false');

  -- Reading, and nothing else.
  b := tests.act('anon', format('select public.request_detail(%L, %L)', number, access));
  perform tests.same('their own', b #>> '{request,email}', 'guest@tests.example');
  perform tests.same('no new draft without an account', b #>> '{can,resubmit}', 'false');
  perform tests.check('anon', format('select public.request_detail(''r-ax'', %L)', access), 'hint:access_ended');
  perform tests.check('anon', format('select public.request_detail(%L)', id), 'hint:sign_in_required');
  perform tests.check('bob', format('select public.request_detail(%L)', id), 'hint:request_not_found');
  perform tests.check('bob', format('select public.request_detail(%L, ''nope'')', id), 'hint:access_ended');
  perform tests.check('anon', 'select public.request_detail(''r-ax'', null)', 'hint:sign_in_required');
  -- It works for an account's request too: access to the address's mail identifies the person.
  perform tests.act('anon', 'select public.send_request_code(''REQ-900001'')');
  perform tests.same('mailed to its address alone', tests.mails('alice@tests.example', '% opens REQ-900001'), 1);

  -- correcting
  perform tests.check('anon', format('select public.correct_request(%L, ''{"phone": "1"}'', %L)', id, access), 'hint:validation_failed');
  perform tests.same('the same again', tests.act('anon', format('select public.correct_request(%L, ''{"phone": "12345", "email": "evil@tests.example"}'', %L)', id, access)), '{"corrected": false}'::jsonb);
  perform tests.act('employee', format('select public.mark_request_opened(%L, ''x'')', id));
  perform tests.same('corrected', tests.act('anon', format('select public.correct_request(%L, ''{"phone": "+1 207 555 0100", "email": "evil@tests.example"}'', %L)', id, access)), '{"corrected": true}'::jsonb);
  perform tests.same('the phone', (select r.phone || ' ' || r.email from public.requests r where r.id = a ->> 'id'), '+1 207 555 0100 guest@tests.example');
  perform tests.same('staff that had read it are told', (select count(*)::int from public.notifications where title = number || ' was corrected' and user_id = tests.id('employee')), 1);
  perform tests.same('others are not', (select count(*)::int from public.notifications where title = number || ' was corrected' and user_id = tests.id('manager_y')), 0);

  -- The look-up says whose turn it is, and nothing more.
  perform tests.same('not yet', tests.act('anon', format('select public.request_status(%L)', number)) -> 'waits_for_you', 'false'::jsonb);
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letter.'')', id));
  b := tests.act('anon', format('select public.request_status(%L)', number));
  perform tests.same('waits for the person', b ->> 'status' || ' ' || (b ->> 'waits_for_you'), 'pending true');
  perform tests.same('without a word of it', b::text ~ 'letter', false);

  -- Answering with a document: only through a slot of this access.
  slot := tests.act('anon', format('select public.create_guest_upload_slot(%L, ''letter.pdf'', ''application/pdf'', 9)', a ->> 'upload_key'));
  perform tests.check('anon', format('select public.answer_request_info(%L, null, %L, %L)', id, access, jsonb_build_array(slot ->> 'id')), 'hint:document_missing');
  insert into storage.objects (bucket_id, name) values ('request-documents', slot ->> 'path');
  perform tests.check('anon', format('select public.answer_request_info(%L, null, %L, %L)', id, 'nope', jsonb_build_array(slot ->> 'id')), 'hint:access_ended');
  b := tests.act('anon', 'select public.create_guest_upload_slot(gen_random_uuid(), ''other.pdf'', ''application/pdf'', 9)');
  insert into storage.objects (bucket_id, name) values ('request-documents', b ->> 'path');
  perform tests.check('anon', format('select public.answer_request_info(%L, null, %L, %L)', id, access, jsonb_build_array(b ->> 'id')), 'hint:document_missing');
  perform tests.check('anon', format('select public.answer_request_info(%L, null, %L)', id, access), 'hint:nothing_to_send');
  perform tests.same('answered', tests.act('anon', format('select public.answer_request_info(%L, ''Here it is'', %L, %L)', id, access, jsonb_build_array(slot ->> 'id'))),
    '{"status": "pending", "documents": 1, "repeated": false}'::jsonb);
  perform tests.same('its answer got lost: the same again', tests.act('anon', format('select public.answer_request_info(%L, ''Here it is'', %L, %L)', id, access, jsonb_build_array(slot ->> 'id'))) ->> 'repeated', 'true');
  perform tests.same('the staff has the paper', (select name || ' ' || kind from public.request_documents d where d.request_id = a ->> 'id'), 'letter.pdf additional');

  -- Withdrawing on a second device ends the first one's access.
  perform tests.act('anon', format('select public.send_request_code(%L)', number));
  b := tests.act('anon', format('select public.check_request_code(%L, %L)', number, pg_temp.code_for(number)));
  other := b ->> 'access';
  perform tests.same('left', tests.act('anon', format('select public.end_request_access(%L)', access)), 'true'::jsonb);
  perform tests.check('anon', format('select public.request_detail(%L, %L)', id, access), 'hint:access_ended');
  perform tests.same('withdrawn', tests.act('anon', format('select public.withdraw_request(%L, %L)', id, other)), '{"status": "withdrawn"}'::jsonb);
  update private.request_access set expires_at = now() - interval '1 second';
  perform tests.check('anon', format('select public.request_detail(%L, %L)', id, other), 'hint:access_ended');
  perform private.sweep();
  perform tests.same('swept', (select count(*)::int from private.request_access), 0);
end $$;

-- Ten documents per question, with an account and without; thirty with a request in all.
create function pg_temp.paper(id text, file text) returns text language sql as $$
  select format('insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (%L, ''p.pdf'', %L, ''application/pdf'', 9)', id, id || '/' || file || '.pdf')
$$;

do $$
declare a jsonb; b jsonb; id text; number text; slots jsonb;
begin
  id := tests.act('alice', 'select public.submit_request(' || tests.answers() || ')') ->> 'id';
  insert into storage.objects (bucket_id, name) select 'request-documents', id || '/' || i || '.pdf' from generate_series(1, 33) i;
  for question in 0 .. 2 loop
    perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letters.'')', id));
    for i in 1 .. 10 loop perform tests.run('alice', pg_temp.paper(id, (question * 10 + i)::text)); end loop;
    perform tests.check('alice', pg_temp.paper(id, '33'), 'hint:too_many_files');
    perform tests.same('ten per question', current_setting('tests.last_detail')::jsonb -> 'max', '10'::jsonb);
    perform tests.same('all are sent', tests.act('alice', format('select public.answer_request_info(%L)', id)) -> 'documents', '10'::jsonb);
  end loop;
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''One more?'')', id));
  perform tests.check('alice', pg_temp.paper(id, '31'), 'hint:too_many_files');
  perform tests.same('thirty in all', current_setting('tests.last_detail')::jsonb -> 'max', '30'::jsonb);
  perform tests.same('words are still an answer', tests.act('alice', format('select public.answer_request_info(%L, ''That was all'')', id)) -> 'documents', '0'::jsonb);

  -- without an account, by one code
  a := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "guest@tests.example"}') || ')');
  id := a ->> 'id'; number := a ->> 'request_number';
  perform tests.act('anon', format('select public.send_request_code(%L)', number));
  a := tests.act('anon', format('select public.check_request_code(%L, %L)', number, pg_temp.code_for(number)));
  for question in 1 .. 4 loop
    perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letters.'')', id));
    slots := '[]';
    for i in 1 .. case question when 4 then 1 else 10 end loop
      b := tests.act('anon', format('select public.create_guest_upload_slot(%L, ''p.pdf'', ''application/pdf'', 9)', a ->> 'upload_key'));
      insert into storage.objects (bucket_id, name) values ('request-documents', b ->> 'path');
      slots := slots || jsonb_build_array(b ->> 'id');
    end loop;
    if question < 4 then
      perform tests.check('anon', format('select public.create_guest_upload_slot(%L, ''p.pdf'', ''application/pdf'', 9)', a ->> 'upload_key'), 'hint:too_many_files');
      perform tests.same('a guest''s are sent', tests.act('anon', format('select public.answer_request_info(%L, null, %L, %L)', id, a ->> 'access', slots)) -> 'documents', '10'::jsonb);
    end if;
  end loop;
  perform tests.check('anon', format('select public.answer_request_info(%L, null, %L, %L)', id, a ->> 'access', slots), 'hint:too_many_files');
  perform tests.same('a guest''s thirty', current_setting('tests.last_detail')::jsonb -> 'max', '30'::jsonb);
end $$;

-- A stranger who knows a number cannot use up the codes of the person: ten per day for each network, a hundred in all.
do $$
declare a jsonb; number text; pattern text;
begin
  update private.app_settings set value = '1' where key = 'rate_limit_factor';
  delete from private.rate_limits;
  a := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "guest@tests.example"}') || ')');
  number := a ->> 'request_number'; pattern := '% opens ' || number;
  perform set_config('ferrobase.client_address', '198.51.100.7', true);
  for i in 1 .. 12 loop
    delete from private.rate_limits where key like 'request-code-pair:%' or key like 'request-code-caller:%';  -- an hour later
    perform tests.same('no answer tells', tests.act('anon', format('select public.send_request_code(%L)', number)), '{"sent": true}'::jsonb);
  end loop;
  perform tests.same('a stranger''s ten', tests.mails('guest@tests.example', pattern), 10);
  perform set_config('ferrobase.client_address', '203.0.113.7', true);
  perform tests.act('anon', format('select public.send_request_code(%L)', number));
  perform tests.same('the person gets a code', tests.mails('guest@tests.example', pattern), 11);
  perform tests.same('and it opens', tests.act('anon', format('select public.check_request_code(%L, %L)', number, pg_temp.code_for(number))) ->> 'ok', 'true');
  for i in 1 .. 100 loop
    perform set_config('ferrobase.client_address', '192.0.2.' || i, true);
    perform tests.act('anon', format('select public.send_request_code(%L)', number));
  end loop;
  perform tests.same('from everywhere', tests.mails('guest@tests.example', pattern), 100);
  perform set_config('ferrobase.client_address', '', true);
  update private.app_settings set value = '1000' where key = 'rate_limit_factor';
end $$;

-- Staff read without writing.
do $$
declare a jsonb; id text;
begin
  a := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "guest@tests.example", "nonprofits": ["x"]}') || ')');
  id := a ->> 'id';
  perform tests.same('read', tests.act('employee', format('select public.staff_request(%L, ''x'')', id)) #>> '{request,email}', 'guest@tests.example');
  perform tests.same('not opened by that', (select opened_at from public.request_nonprofits where request_id = a ->> 'id'), null::timestamptz);
  perform tests.same('opened', tests.act('employee', format('select public.mark_request_opened(%L, ''x'')', id)), 'true'::jsonb);
  perform tests.same('once', tests.act('manager', format('select public.mark_request_opened(%L, ''x'')', id)), 'false'::jsonb);
  perform tests.check('volunteer', format('select public.staff_request(%L, ''x'')', id), 'hint:role_not_allowed');
  perform tests.check('manager_y', format('select public.staff_request(%L, ''y'')', id), 'hint:request_not_found');
  -- Withdrawn before anybody read it: staff who follow the notification are told so, without personal data.
  a := tests.act('alice', 'select public.submit_request(' || tests.answers('{"nonprofits": ["x"]}') || ')');
  perform tests.act('alice', format('select public.withdraw_request(%L)', a ->> 'id'));
  a := tests.act('manager', format('select public.staff_request(%L, ''x'')', a ->> 'id'));
  perform tests.same('told', a ->> 'decided_message', 'This request has already been withdrawn.');
  perform tests.same('without the person', a::text ~ 'Alice', false);
end $$;

-- Settings are saved in one step, and never over a colleague's change.
do $$
begin
  perform tests.act('admin', 'select public.save_organization(''x'', ''{"mission": "Help all", "second_approval_above": 500}'', ''{"mission": "Help", "second_approval_above": null}'')');
  perform tests.same('both', (select n.mission || ' ' || s.second_approval_above from public.nonprofits n join public.nonprofit_settings s on s.nonprofit_id = n.id where n.id = 'x'), 'Help all 500.00');
  perform tests.check('admin', 'select public.save_organization(''x'', ''{"mission": "Mine", "phone": "12345"}'', ''{"mission": "Help", "phone": null}'')', 'hint:changed_meanwhile');
  perform tests.same('which', current_setting('tests.last_detail')::jsonb -> 'changed', '["mission"]'::jsonb);
  perform tests.act('admin', 'select public.save_organization(''x'', ''{"phone": "12345"}'', ''{"phone": null}'')');
  perform tests.same('another field goes beside it', (select mission || ' ' || phone from public.nonprofits where id = 'x'), 'Help all 12345');
  perform tests.check('admin', 'select public.save_organization(''x'', ''{"phone": "99999", "second_approval_above": -1}'', ''{"phone": "12345", "second_approval_above": 500}'')', 'hint:invalid_amount');
  perform tests.same('all or nothing', (select phone from public.nonprofits where id = 'x'), '12345');
  perform tests.check('manager', 'select public.save_organization(''x'', ''{"phone": "1"}'', ''{}'')', 'hint:role_not_allowed');
  perform tests.check('admin', 'select public.save_organization(''x'', ''{"status": "closed", "admin_user_id": null}'', ''{}'')', 'rows=1');
  perform tests.same('nothing else', (select status || ' ' || (admin_user_id is not null) from public.nonprofits where id = 'x'), 'active true');
end $$;

select tests.count() as checks;
rollback;
