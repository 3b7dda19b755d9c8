-- Each rule of the specification's section 5, enforced by the database: through the function or plain write that a page
-- uses, with the page's message for its field, and by the constraint behind it if a function could be bypassed.
-- Passwords belong to the auth API; comparing two entries of a password, and completing one tab before the next, belong
-- to the page.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- Requester info and Submit request: wizard, single page and drafts all use submit_request.
do $$
declare r record; alice text := quote_literal(tests.id('alice'));
begin
  for r in select * from (values
    ('{"category_id": null}', 'category_id', 'Please select a category'),
    ('{"nonprofits": []}', 'nonprofits', 'Please select at least one nonprofit'),
    ('{"description": "123456789"}', 'description', 'Description must be at least 10 characters'),
    ('{"amount": "twelve"}', 'amount', 'Amount must be a number'),
    ('{"contact_consent": false}', 'contact_consent', 'You must agree to be contacted'),
    ('{"email": "ada@nowhere"}', 'email', 'Please enter a valid email address'),
    ('{"first_name": "A"}', 'first_name', 'First name is required'),
    ('{"last_name": "B"}', 'last_name', 'Last name is required'),
    ('{"phone": "1234"}', 'phone', 'Phone number is required'),
    ('{"address": "1 St"}', 'address', 'Street address is required'),
    ('{"city": "P"}', 'city', 'City is required'),
    ('{"state": "M"}', 'state', 'State/Province is required'),
    ('{"postal_code": "0"}', 'postal_code', 'Postal/ZIP code is required'),
    ('{"urgency": "now"}', 'urgency', 'Please choose one of the answers'),
    ('{"preferred_contact": "fax"}', 'preferred_contact', 'Please choose one of the answers')) t (change, field, message)
  loop
    perform tests.tells('anon', 'select public.submit_request(' || tests.answers(r.change::jsonb) || ')', r.field, r.message);
    perform tests.tells('alice', 'select public.submit_request(' || tests.answers(r.change::jsonb || '{"draft_id": "r-draft"}') || ')', r.field, r.message);
  end loop;
  foreach r.change in array array['{"nonprofits": ["a", "b", "c", "d"]}'] loop
    perform tests.check('anon', 'select public.submit_request(' || tests.answers(r.change::jsonb) || ')', 'hint:too_many_nonprofits');
    perform tests.same('a fourth', current_setting('tests.last_detail')::jsonb #>> '{fields,nonprofits}', 'You can select up to 3 nonprofits for your request.');
  end loop;
  -- Exactly the minimum length is long enough.
  perform tests.check('anon', 'select public.submit_request(' || tests.answers('{"description": "1234567890", "first_name": "Al", "last_name": "Bo", "phone": "12345", "address": "1 Elm", "city": "Po", "state": "ME", "postal_code": "04", "amount": "0.5"}') || ')', 'rows=1');
  -- The constraints of a sent request hold for every writer.
  foreach r.change in array array['category = null', 'nonprofits = ''{}''', 'description = ''123456789''', 'amount = ''twelve''', 'contact_consent = false', 'email = ''nobody''', 'first_name = ''A''',
    'last_name = ''B''', 'phone = ''1234''', 'address = ''1 St''', 'city = ''P''', 'state = ''M''', 'postal_code = ''0''', 'urgency = ''now''', 'preferred_contact = ''fax''', 'request_number = null',
    'amount_approved = 5', 'status = ''approved''', 'status = ''declined''', 'status = ''processing''', 'needs_more_proof = true'] loop
    perform tests.check('service', 'update public.requests set ' || r.change || ' where id = ''r-ax''', 'state:23514');
  end loop;
  -- A draft may be incomplete, but not longer than a request or sent to a fourth nonprofit.
  perform tests.check('alice', 'update public.requests set description = '''', first_name = null, amount = ''about ten'' where id = ''r-draft''', 'rows=1');
  perform tests.check('alice', 'update public.requests set nonprofits = array[''a'', ''b'', ''c'', ''d''] where id = ''r-draft''', 'hint:too_many_nonprofits');
  perform tests.check('alice', 'update public.requests set description = repeat(''x'', 5001) where id = ''r-draft''', 'state:23514');
end $$;

-- Sign up and My Profile: a name of at least two letters; a role.
do $$
declare r record; alice text := quote_literal(tests.id('alice'));
begin
  perform tests.account('short', 'requester');
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": " X "}' where id = tests.id('short');
  perform tests.same('a name of one letter does not replace one', (select full_name from public.profiles where id = tests.id('short')), 'Short Tester');
  insert into auth.users (instance_id, id, aud, role, email, encrypted_password, raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
  values ('00000000-0000-0000-0000-000000000000', tests.id('x1'), 'authenticated', 'authenticated', 'x1@tests.example', 'x', '{}', '{"full_name": "X"}', now(), now());
  perform tests.same('nor is it one', (select full_name from public.profiles where id = tests.id('x1')), null::text);
  perform tests.tells('alice', 'update public.profiles set full_name = ''A'' where id = ' || alice, 'full_name', 'Full name is required');
  perform tests.check('service', 'update public.profiles set full_name = ''A'' where id = ' || alice, 'state:23514');
  perform tests.tells('alice', 'update public.user_roles set role = null', 'role', 'Please select a role');
  perform tests.tells('alice', 'update public.user_roles set role = ''nonprofit'', nonprofit_role = ''owner''', 'role', 'Please select a role');
end $$;

-- Profile: the whole form, and a plain write of one field.
do $$
declare r record; alice text := quote_literal(tests.id('alice'));
  good jsonb := '{"first_name": "Ada", "last_name": "Love", "birthday": "2000-02-29", "country": "France", "id_type": "Passport", "id_number": "P1"}';
begin
  perform tests.act('alice', 'select public.save_profile(' || quote_literal(good) || ')');
  for r in select * from (values
    ('first_name', '"A"', 'First name is required', 'profiles'), ('last_name', '" "', 'Last name is required', 'profiles'), ('birthday', 'null', 'Birthday is required', 'profiles'),
    ('birthday', '"2999-01-01"', 'Please enter a valid birthday', 'profiles'), ('birthday', '"1850-01-01"', 'Please enter a valid birthday', 'profiles'), ('country', '""', 'Country is required', 'profiles'),
    ('id_type', '""', 'ID type is required', 'profile_identities'), ('id_number', '" "', 'ID number is required', 'profile_identities')) t (field, value, message, source)
  loop
    perform tests.tells('alice', 'select public.save_profile(' || quote_literal(good || jsonb_build_object(r.field, r.value::jsonb)) || ')', r.field, r.message);
    perform tests.tells('alice', format('update public.%I set %I = %L', r.source, r.field, r.value::jsonb #>> '{}'), r.field, r.message);
  end loop;
  perform tests.check('alice', 'select public.save_profile(' || quote_literal(good || '{"middle_name": "", "phone": "", "bio": ""}') || ')', 'rows=1');
end $$;

-- Pictures: the path must be in the owner's folder.
do $$
begin
  perform tests.check('alice', 'update public.profiles set photo_path = ' || quote_literal(tests.id('alice') || '/me.png') || ' where id = auth.uid()', 'rows=1');
  perform tests.check('alice', 'update public.profiles set photo_path = ' || quote_literal(tests.id('bob') || '/me.png') || ' where id = auth.uid()', 'state:23514');
  perform tests.check('admin', 'update public.nonprofits set logo_path = ''x/logo.png'' where id = ''x''', 'rows=1');
  perform tests.check('admin', 'update public.nonprofits set logo_path = ''y/logo.png'' where id = ''x''', 'state:23514');
end $$;

-- Onboarding and settings of an organization; team; categories
do $$
declare f text; o jsonb := '{"name": "N", "legal_status": "l", "registration_number": "1", "employee_count": "3", "mission": "m"}';
begin
  foreach f in array array['name', 'legal_status', 'registration_number', 'employee_count', 'mission'] loop
    perform tests.tells('stranger', 'select public.create_organization(' || quote_literal(o || jsonb_build_object(f, ' ')) || ')', f, 'Please complete all required fields');
    perform tests.tells('stranger', 'insert into public.nonprofits (name, legal_status, registration_number, employee_count, mission, admin_user_id) select n.name, n.legal_status, n.registration_number, n.employee_count, n.mission, auth.uid()
      from jsonb_populate_record(null::public.nonprofits, ' || quote_literal(o || jsonb_build_object(f, null)) || ') n', f, 'Please complete all required fields');
  end loop;
  perform tests.tells('admin', 'update public.nonprofits set mission = '' '' where id = ''x''', 'mission', 'Please complete all required fields');
  perform tests.tells('admin', 'update public.nonprofits set email = ''help'' where id = ''x''', 'email', 'Please enter a valid email address');
  perform tests.check('service', 'update public.nonprofits set name = '' '' where id = ''x''', 'state:23514');
  perform tests.tells('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name) values (''x'', ''n@tests.example'', '' '')', 'full_name', 'Please fill in all required fields.');
  perform tests.tells('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name) values (''x'', '' '', ''N'')', 'email', 'Please fill in all required fields.');
  perform tests.tells('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''x'', ''n@tests.example'', ''N'', null)', 'role', 'Please fill in all required fields.');
  perform tests.tells('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name) values (''x'', ''n@nowhere'', ''N'')', 'email', 'Please enter a valid email address');
  perform tests.tells('admin', 'update public.nonprofit_team_members set role = ''owner'' where id = ''m-manager''', 'role', 'Please fill in all required fields.');
  perform tests.run('admin', 'insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name) values (''m-default'', ''x'', ''n@tests.example'', ''N'')');
  perform tests.same('default role', (select role from public.nonprofit_team_members where id = 'm-default'), 'employee');
  perform tests.tells('manager', 'insert into public.categories (name, nonprofit_id) values ('' '', ''x'')', 'name', 'Category name required');
end $$;

-- Decisions, status look-up, donor messages, money, newsletter
do $$
begin
  perform tests.check('manager', 'select public.approve_request(''r-ax'', ''x'', null)', 'hint:invalid_amount');
  perform tests.tells('manager', 'select public.deny_request(''r-ax'', ''x'', '' '')', 'reason', 'Please give a reason (at most 5000 characters).');
  perform tests.tells('manager', 'select public.request_more_info(''r-ax'', ''x'', '' '')', 'notes', 'Please write what is needed (at most 5000 characters).');
  -- Ticked items and notes are kept as one text, so they share its limit.
  perform tests.tells('manager', format('select public.request_more_info(''r-ax'', ''x'', %L)', repeat('x', 5001)), 'notes', 'Please write what is needed (at most 5000 characters).');
  perform tests.check('manager', format('select public.request_more_info(''r-ax'', ''x'', %L)', repeat('x', 5000)), 'rows=1');
  perform tests.tells('manager', format('select public.request_more_info(''r-ax'', ''x'', %L, array[''rent''])', repeat('x', 5000)), 'notes', 'Please write what is needed (at most 5000 characters).');
  perform tests.check('manager', format('select public.request_more_info(''r-ax'', ''x'', %L, array[''rent''])', repeat('x', 4800)), 'rows=1');
  perform tests.tells('anon', 'select public.request_status(''R1'')', 'number', 'Request ID is required');
  perform tests.tells('manager', 'select public.send_donor_message(''x'', ''a'', ''long enough'')', 'subject', 'Subject is required');
  perform tests.tells('manager', 'select public.send_donor_message(''x'', ''ab'', ''too short'')', 'message', 'Message must be at least 10 characters');
  perform tests.check('service', 'insert into public.donor_messages (nonprofit_id, subject, message) values (''x'', ''a'', ''long enough'')', 'state:23514');
  perform tests.check('service', 'insert into public.donor_messages (nonprofit_id, subject, message) values (''x'', ''ab'', ''too short'')', 'state:23514');
  perform tests.tells('anon', 'select public.pledge_donation(jsonb_build_object(''nonprofit_id'', ''x'', ''amount'', ''five'', ''email'', ''p@tests.example'', ''key'', gen_random_uuid()))', 'amount', 'Amount must be a number');
  perform tests.tells('anon', 'select public.subscribe_newsletter(''nope'')', 'email', 'Please enter a valid email address');
  perform tests.tells('anon', 'select public.send_address_code(''nope'')', 'email', 'Please enter a valid email address');
end $$;

-- Documents: types, 10 MB, five and ten files
do $$
declare i int; f record; row_ text := 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''%s'', ''%s'', ''%s'', ''%s'', %s)';
begin
  for f in select * from (values ('application/pdf', 'rows=1'), ('image/jpeg', 'rows=1'), ('image/png', 'rows=1'), ('application/msword', 'rows=1'),
    ('application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'rows=1'), ('image/gif', 'hint:file_type'), ('text/html', 'hint:file_type'), ('application/zip', 'hint:file_type')) t (mime, outcome)
  loop
    perform tests.check('alice', format(row_, 'r-draft', 'n', 'r-draft/new.pdf', f.mime, 9), f.outcome);
    if f.outcome <> 'rows=1' then perform tests.same('the message', substring(current_setting('tests.last_error') from 7), 'n is not an accepted file type.'); end if;
  end loop;
  perform tests.check('alice', format(row_, 'r-draft', 'n.pdf', 'r-draft/new.pdf', 'application/pdf', 10485760), 'rows=1');
  perform tests.check('alice', format(row_, 'r-draft', 'n.pdf', 'r-draft/new.pdf', 'application/pdf', 10485761), 'hint:file_too_large');
  perform tests.same('the message', substring(current_setting('tests.last_error') from 7), 'n.pdf exceeds the maximum file size of 10MB.');
  for i in 1 .. 15 loop insert into storage.objects (bucket_id, name) values ('request-documents', 'r-draft/' || i), ('request-documents', 'r-ax/' || i); end loop;
  for i in 1 .. 5 loop perform tests.run('alice', format(row_, 'r-draft', i, 'r-draft/' || i, 'application/pdf', 9)); end loop;
  perform tests.check('alice', format(row_, 'r-draft', '6', 'r-draft/6', 'application/pdf', 9), 'hint:too_many_files');
  perform tests.same('the message', substring(current_setting('tests.last_error') from 7), 'You can only upload a maximum of 5 files.');
  perform tests.act('manager', 'select public.request_more_info(''r-ax'', ''x'', ''more'')');
  for i in 1 .. 10 loop perform tests.run('alice', format(row_, 'r-ax', i, 'r-ax/' || i, 'application/pdf', 9)); end loop;
  perform tests.check('alice', format(row_, 'r-ax', '11', 'r-ax/11', 'application/pdf', 9), 'hint:too_many_files');
  perform tests.same('the message', substring(current_setting('tests.last_error') from 7), 'You can only upload a maximum of 10 files.');
  perform tests.same('buckets take what the forms take', (select string_agg(b.id || ' ' || b.file_size_limit || ' ' || b.public, ', ' order by b.id) from storage.buckets b),
    'logos 5242880 true, profile-photos 10485760 false, request-documents 10485760 false');
  perform tests.same('logos', (select allowed_mime_types from storage.buckets where id = 'logos'), array['image/jpeg', 'image/png']);
end $$;

select tests.count() as checks;
rollback;
