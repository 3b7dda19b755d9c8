-- Every table × verb × person: who is allowed, who is not, and what a refused person sees.
-- 'rows=0': the statement is allowed and row level security hides every row; 'refused': 42501.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare alice text := quote_literal(tests.id('alice')); q text; verb text; told text;
begin
  -- user_roles
  perform tests.matrix('select * from public.user_roles where user_id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('select * from public.user_roles', '{}', 'rows=1');
  perform tests.matrix('insert into public.user_roles (user_id, role) values (' || alice || ', ''donor'') on conflict (user_id) do update set role = excluded.role', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('update public.user_roles set role = ''nonprofit'', nonprofit_role = ''admin'' where user_id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('delete from public.user_roles where user_id = ' || alice, '{}', 'refused');
  perform tests.check('alice', 'update public.user_roles set role = ''root''', 'hint:validation_failed');
  perform tests.check('service', 'update public.user_roles set role = ''root''', 'state:23514');
  -- profiles and ID numbers
  perform tests.matrix('select * from public.profiles where id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('update public.profiles set bio = ''x'' where id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.profiles (id) values (' || alice || ')', '{"alice": "state:23505"}', 'refused');
  perform tests.matrix('delete from public.profiles where id = ' || alice, '{}', 'refused');
  perform tests.matrix('select * from public.profile_identities', '{"alice": "rows=1"}');
  perform tests.check('service', 'select * from public.profile_identities', 'refused');
  perform tests.matrix('update public.profile_identities set id_number = ''9''', '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.profile_identities (user_id, id_type, id_number) values (' || quote_literal(tests.id('bob')) || ', ''a'', ''b'')', '{"bob": "rows=1"}', 'refused');
  perform tests.matrix('delete from public.profile_identities', '{"alice": "rows=1"}');
  -- nonprofits
  perform tests.matrix('select * from public.nonprofits where id in (''x'', ''y'')', '{"employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "volunteer": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}');
  perform tests.check('employee', 'select admin_user_id from public.nonprofits where id = ''y''', 'rows=0');
  perform tests.matrix('select * from public.nonprofit_directory where id in (''x'', ''y'')', '{}', 'rows=2', 'rows=2');
  perform tests.matrix('select id, name, mission, email, phone, website, description, location, category, average_response_time_days, logo_path, status, helps_with, service_area from public.nonprofits where id in (''x'', ''y'')', '{"employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "volunteer": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=2');
  perform tests.matrix('update public.nonprofits set mission = ''m'' where id = ''x''', '{"admin": "rows=1"}');
  perform tests.matrix('insert into public.nonprofits (name, legal_status, registration_number, employee_count, mission, admin_user_id) values (''n'', ''l'', ''r'', 1, ''m'', ' || alice || ')', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('delete from public.nonprofits where id = ''x''', '{}', 'refused');
  perform tests.check('admin', 'update public.nonprofits set status = ''closed'' where id = ''x''', 'hint:not_changeable');
  perform tests.check('admin', 'update public.nonprofits set admin_user_id = ' || alice || ' where id = ''x''', 'hint:not_changeable');
  perform tests.check('admin', 'insert into public.nonprofits (name, legal_status, registration_number, employee_count, mission, admin_user_id) values (''n'', ''l'', ''r'', 1, ''m'', ' || quote_literal(tests.id('admin')) || ')', 'state:23505');
  -- nonprofit_settings
  perform tests.matrix('select * from public.nonprofit_settings where nonprofit_id = ''x''', '{"admin": "rows=1", "manager": "rows=1", "employee": "rows=1"}');
  perform tests.matrix('update public.nonprofit_settings set second_approval_above = 5 where nonprofit_id = ''x''', '{"admin": "rows=1"}');
  perform tests.matrix('insert into public.nonprofit_settings (nonprofit_id) values (''x'')', '{}', 'refused');
  perform tests.matrix('delete from public.nonprofit_settings', '{}', 'refused');
  -- nonprofit_team_members: 6 in x (admin, manager, manager2, employee, volunteer, gone), 2 in y
  perform tests.matrix('select * from public.nonprofit_team_members where nonprofit_id = ''x''', '{"admin": "rows=6", "manager": "rows=6", "employee": "rows=1", "volunteer": "rows=1", "gone": "rows=1"}');
  perform tests.matrix('insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role, user_id, created_at) values (''x'', ''new@tests.example'', ''New'', ''employee'', ''pending'', now())', '{"admin": "rows=1"}', 'refused');
  perform tests.matrix('update public.nonprofit_team_members set role = ''admin'', is_active = true where nonprofit_id = ''x'' and user_id in (' || (select string_agg(quote_literal(tests.id(w)), ',') from unnest(array['employee', 'volunteer', 'gone', 'stranger']) w) || ')', '{"admin": "rows=3"}');
  perform tests.matrix('delete from public.nonprofit_team_members where id = ''m-volunteer''', '{"admin": "rows=1"}');
  perform tests.check('admin', 'update public.nonprofit_team_members set is_active = false where user_id = ' || quote_literal(tests.id('admin')), 'hint:last_admin');
  perform tests.check('admin', 'delete from public.nonprofit_team_members where user_id = ' || quote_literal(tests.id('admin')), 'hint:last_admin');
  perform tests.check('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''x'', ''nope'', ''New'', ''employee'')', 'hint:validation_failed');
  perform tests.check('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''x'', ''MANAGER@tests.example'', ''New'', ''employee'')', 'state:23505');
  -- saved_replies
  insert into public.saved_replies (id, nonprofit_id, kind, title, body) values ('sr-x', 'x', 'info', 'Bill', 'Please send the bill.'), ('sr-y', 'y', 'info', 'Bill', 'The bill, please.');
  perform tests.matrix('select * from public.saved_replies', '{"admin": "rows=1", "manager": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}');
  perform tests.matrix('insert into public.saved_replies (nonprofit_id, kind, title, body) values (''x'', ''denial'', ''Full'', ''We are full.'') returning *', '{"admin": "rows=1", "manager": "rows=1"}', 'refused');
  perform tests.matrix('update public.saved_replies set body = ''Another'' where id = ''sr-x''', '{"admin": "rows=1", "manager": "rows=1"}');
  perform tests.matrix('delete from public.saved_replies where id = ''sr-x''', '{"admin": "rows=1", "manager": "rows=1"}');
  perform tests.check('manager', 'update public.saved_replies set nonprofit_id = ''y'' where id = ''sr-x''', 'refused');

  -- categories
  perform tests.matrix('select * from public.categories where id in (''t-cat'', ''t-cat-x'', ''t-cat-y'')', '{}', 'rows=3', 'rows=3');
  perform tests.matrix('insert into public.categories (name, description, nonprofit_id) values (''Fresh'', ''d'', ''x'') returning *', '{"admin": "rows=1", "manager": "rows=1"}', 'refused');
  perform tests.matrix('insert into public.categories (name) values (''Global'')', '{}', 'refused');
  perform tests.matrix('update public.categories set description = ''z'' where id in (''t-cat-x'', ''t-cat'')', '{"admin": "rows=1", "manager": "rows=1"}');
  perform tests.matrix('delete from public.categories where id in (''t-cat-x'', ''t-cat'')', '{"admin": "rows=1", "manager": "rows=1"}');
  perform tests.check('manager', 'insert into public.categories (name, nonprofit_id) values (''  '', ''x'')', 'hint:validation_failed');
  perform tests.check('manager', 'insert into public.categories (name, nonprofit_id) values ('' own OF x '', ''x'')', 'state:23505');
  perform tests.check('manager', 'update public.categories set nonprofit_id = ''y'' where id = ''t-cat-x''', 'refused');
  -- denial_reasons
  perform tests.matrix('select * from public.denial_reasons where code = ''other''', '{}', 'rows=1', 'rows=1');
  perform tests.matrix('delete from public.denial_reasons', '{}', 'refused');
  -- requests: Alice has three, Bob one; staff read them only through functions and views
  perform tests.matrix('select * from public.requests', '{"alice": "rows=3", "bob": "rows=1"}');
  perform tests.matrix('select * from public.requests where status = ''draft''', '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.requests (user_id, description) values (' || alice || ', ''d'')', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('update public.requests set description = ''d2'' where id in (''r-draft'', ''r-ax'', ''r-done'')', '{"alice": "rows=1"}');
  perform tests.matrix('delete from public.requests', '{"alice": "rows=1"}');
  perform tests.check('alice', 'insert into public.requests (id, user_id) values (''guest'', ' || alice || ')', 'rows=1');
  perform tests.check('alice', 'with r as (insert into public.requests (id, user_id) values (''guest'', ' || alice || ') returning id) select * from r where id = ''guest''', 'rows=0');
  perform tests.check('alice', 'update public.requests set status = ''pending'' where id = ''r-draft''', 'hint:use_submit_request');
  perform tests.check('alice', 'update public.requests set status = ''approved'', amount_approved = 5 where id = ''r-ax''', 'rows=0');
  perform tests.check('alice', 'insert into public.requests (user_id, nonprofits) values (' || alice || ', array[''a'', ''b'', ''c'', ''d''])', 'hint:too_many_nonprofits');
  perform tests.check('alice', 'select "needsMoreProof"(r), "pendingNotes"(r), "denialReason"(r), documents(r) from public.requests r where id = ''r-ax''', 'rows=1');
  -- request_nonprofits
  perform tests.matrix('select request_id, nonprofit_id, state, submitted_at, opened_at, acted_at, reason, reason_code from public.request_nonprofits where request_id = ''r-ax''', '{"alice": "rows=2", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}');
  foreach q in array array['insert into public.request_nonprofits (request_id, nonprofit_id) values (''r-by'', ''x'')', 'update public.request_nonprofits set state = ''claimed''', 'delete from public.request_nonprofits',
    'insert into public.request_events (request_id, type, actor) values (''r-ax'', ''approved'', ''system'')', 'update public.request_events set note = ''x''', 'delete from public.request_events'] loop
    perform tests.matrix(q, '{}', 'refused');
  end loop;
  -- request_events and request_documents: for the owner only; staff get them from open_request
  perform tests.matrix('select id, request_id, type, actor, nonprofit_id, note, amount, for_requester, created_at from public.request_events where request_id = ''r-ax''', '{"alice": "rows=1"}');
  perform tests.matrix('select id, request_id, name, path, mime_type, size_bytes, kind, created_at from public.request_documents', '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-draft/new.pdf'', ''application/pdf'', 9)', '{"alice": "rows=1"}', 'hint:request_not_found');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-draft/lost.pdf'', ''application/pdf'', 9)', 'hint:document_missing');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-ax/a.pdf'', ''application/pdf'', 9)', 'hint:document_path');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.exe'', ''r-draft/new.pdf'', ''application/x-msdownload'', 9)', 'hint:file_type');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-draft/new.pdf'', ''application/pdf'', 10485761)', 'hint:file_too_large');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-ax'', ''n.pdf'', ''r-ax/n.pdf'', ''application/pdf'', 9)', 'hint:documents_not_wanted');
  perform tests.matrix('update public.request_documents set name = ''x''', '{}', 'refused');
  perform tests.matrix('delete from public.request_documents', '{}');
  -- notifications
  perform tests.matrix('select * from public.notifications where id = ''n-alice''', '{"alice": "rows=1"}');
  perform tests.matrix('update public.notifications set read = true where id = ''n-alice''', '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.notifications (user_id, title, message) values (' || alice || ', ''t'', ''m'')', '{}', 'refused');
  perform tests.matrix('delete from public.notifications where id = ''n-alice''', '{"alice": "rows=1"}');
  -- money: only for managers of x; nobody writes directly
  foreach q in array array['budget_allocations', 'budget_transactions', 'donations'] loop
    perform tests.matrix('insert into public.' || q || ' (nonprofit_id, amount) values (''x'', 1)', '{}', 'refused');
    perform tests.matrix('update public.' || q || ' set amount = 1', '{}', 'refused');
    perform tests.matrix('delete from public.' || q, '{}', 'refused');
  end loop;
  perform tests.matrix('select * from public.budget_allocations', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('select * from public.budget_transactions', '{"manager": "rows=2", "admin": "rows=2"}');
  perform tests.matrix('select id, nonprofit_id, donor_name, donor_email, amount, status, note, pledged_at, received_at, waits, dated from public.donations', '{"donor": "rows=1", "manager": "rows=2", "admin": "rows=2"}');
  -- donor messages
  perform tests.matrix('select id, nonprofit_id, subject, message, recipient_count, created_at from public.donor_messages', '{"donor": "rows=1", "manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('insert into public.donor_messages (nonprofit_id, subject, message) values (''x'', ''sss'', ''mmmmmmmmmmmm'')', '{}', 'refused');
  perform tests.matrix('delete from public.donor_messages', '{}', 'refused');
  perform tests.matrix('select * from public.donor_message_recipients', '{"donor": "rows=1"}');
  perform tests.matrix('update public.donor_message_recipients set read_at = now()', '{"donor": "rows=1"}');
  perform tests.matrix('insert into public.donor_message_recipients (message_id, donor_email) values (''dm-1'', ''a@b.co'')', '{}', 'refused');
  perform tests.matrix('select id, message_id, nonprofit_id, from_name, subject, message, read_at, created_at from public.donor_message_replies', '{"donor": "rows=1", "manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('update public.donor_message_replies set read_at = now()', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('insert into public.donor_message_replies (message_id, nonprofit_id, from_name, subject, message) values (''dm-1'', ''x'', ''a'', ''b'', ''c'')', '{}', 'refused');
  -- views
  perform tests.matrix('select * from public.my_requests', '{"alice": "rows=2", "bob": "rows=1"}');
  perform tests.matrix('select * from public.incoming_requests', '{"employee": "rows=2", "manager": "rows=2", "admin": "rows=2", "manager_y": "rows=2", "admin_y": "rows=2"}');
  perform tests.matrix('select * from public.approved_grants', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('select * from public.donor_inbox', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('select * from public.my_donor_messages', '{"donor": "rows=1"}');
  -- nobody writes directly what functions write
  foreach q in array array['insert into public.denial_reasons (code, label, position) values (''z'', ''z'', 9)', 'update public.denial_reasons set label = ''z''',
    'update public.donor_messages set subject = ''forged''', 'delete from public.donor_message_recipients', 'delete from public.donor_message_replies'] loop
    perform tests.matrix(q, '{}', 'refused');
  end loop;
  foreach q in array array['my_requests', 'incoming_requests', 'approved_grants', 'donor_inbox', 'my_donor_messages', 'nonprofit_directory'] loop
    foreach verb in array array['insert into public.' || q || ' default values', 'delete from public.' || q,
      'update public.' || q || ' set ' || (select quote_ident(a.attname) || ' = null' from pg_attribute a where a.attrelid = ('public.' || q)::regclass and a.attnum = 1)] loop
      -- a view of several tables cannot be written at all
      told := case when q in ('my_requests', 'donor_inbox', 'approved_grants', 'nonprofit_directory') then 'refused' else 'state:55000' end;
      perform tests.matrix(verb, '{}', told, told);
    end loop;
  end loop;
  -- columns that a reader of the row may not see: naming one is refused, and so is *
  foreach q in array array['opened_by from public.request_nonprofits', 'acted_by from public.request_nonprofits', 'actor_user_id from public.request_events', 'uploaded_by from public.request_documents',
    'donor_user_id from public.donations', 'recorded_by from public.donations', 'pledge_key from public.donations', 'sent_by from public.donor_messages', 'send_key from public.donor_messages',
    'donor_user_id from public.donor_message_replies', '* from public.request_events', '* from public.request_documents', '* from public.request_nonprofits', '* from public.donations'] loop
    perform tests.matrix('select ' || q, '{}', 'refused');
  end loop;
  foreach q in array array['admin_user_id', 'legal_status', 'registration_number', 'employee_count', 'created_at', '*'] loop
    perform tests.check('anon', 'select ' || q || ' from public.nonprofits', 'refused');
  end loop;
  -- a column that may not be read may not be used in a filter or sort order either
  perform tests.check('anon', 'select id from public.nonprofits where admin_user_id is not null', 'refused');
  perform tests.check('anon', 'select id from public.nonprofits order by admin_user_id', 'refused');
  perform tests.check('alice', 'select id from public.request_events where actor_user_id is not null', 'refused');
  -- what the API must not reach at all
  foreach q in array array['private.app_settings', 'private.team_invitations', 'private.guest_upload_slots', 'private.subscriptions', 'private.address_codes', 'private.address_proofs', 'private.rate_limits', 'private.account_addresses', 'private.incoming_tally', 'private.request_codes', 'private.request_access', 'private.budget_tally', 'private.sent_contents', 'private.first_approvals', 'private.incoming_requests', '_supavisor.outbox', '_supavisor.inbox', '_supavisor.hourly', 'ferrobase.hourly', 'auth.users', 'auth.identities', 'auth.sessions', 'auth.refresh_tokens'] loop
    perform tests.matrix('select * from ' || q, '{}', 'refused');
  end loop;
end $$;

-- The Supabase CLI's remote reset drops every policy as postgres. Our own bookkeeping is protected by privileges.
do $$
begin
  perform tests.same('policies of our own tables', (select count(*)::int from pg_policies where schemaname in ('_supavisor', 'ferrobase')), 0);
end $$;

-- what holds for all objects, including later ones
do $$
declare x record;
begin
  for x in select c.oid::regclass::text as name, c.relrowsecurity as secured, (select count(*) from pg_policy p where p.polrelid = c.oid) as policies
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
  loop
    perform tests.same(x.name || ' has row level security and a policy', x.secured and x.policies > 0, true);
  end loop;
  for x in select p.oid::regprocedure::text as name from pg_proc p
    where p.pronamespace in ('public'::regnamespace, 'private'::regnamespace, 'functions'::regnamespace) and p.prosecdef
      and not coalesce(p.proconfig @> array['search_path=""'], false)
  loop
    raise exception 'security definer without a search path: %', x.name;
  end loop;
  perform tests.same('tables that hold ID numbers', (select string_agg(distinct c.table_name::text, ' ') from information_schema.columns c
    where c.table_schema in ('public', 'private') and c.column_name ~ '^id_(number|type)$'), 'profile_identities');
  perform tests.same('functions that anon may call', (select array_agg(p.proname::text order by p.proname) from pg_proc p
      where p.pronamespace = 'public'::regnamespace and has_function_privilege('anon', p.oid, 'execute')),
    array['answer_request_info', 'check_address_code', 'check_request_code', 'confirm_newsletter', 'correct_request', 'create_guest_upload_slot', 'end_request_access', 'me', 'nonprofits_for', 'pledge_donation', 'remove_guest_upload_slot', 'request_detail', 'request_status',
      'send_address_code', 'send_request_code', 'submit_request', 'subscribe_newsletter', 'team_invitation', 'unsubscribe', 'withdraw_request']);
  perform tests.same('tables that anon may touch', (select array_agg(c.relname::text order by c.relname) from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v') and (has_table_privilege('anon', c.oid, 'select, insert, update, delete') or has_any_column_privilege('anon', c.oid, 'select, insert, update'))),
    array['categories', 'denial_reasons', 'nonprofit_directory', 'nonprofits']);
  perform tests.same('foreign keys without an index on their column', (
    select coalesce(string_agg(k.conrelid::regclass || '.' || k.conname, ', '), '') from pg_constraint k
    where k.contype = 'f' and k.connamespace in ('public'::regnamespace, 'private'::regnamespace) and k.confdeltype in ('c', 'n') and k.confrelid <> 'public.denial_reasons'::regclass
      and not exists (select 1 from pg_index i where i.indrelid = k.conrelid and i.indkey[0] = k.conkey[1]
        and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) ~ '^\(\w+ IS NOT NULL\)$'))), '');
end $$;

-- service_role writes what the platform stores, but reads no ID numbers
do $$
declare r record; v text;
begin
  for r in select c.relname, c.relkind from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') loop
    foreach v in array array['select', 'insert', 'update', 'delete'] loop
      perform tests.same('service_role ' || v || ' ' || r.relname, has_table_privilege('service_role', 'public.' || r.relname, v),
        r.relname <> 'profile_identities' and (r.relkind = 'r' or v = 'select'));
    end loop;
  end loop;
end $$;

-- Every API role in the catalog has a test person, and every person has been checked on every table and view.
select tests.same('roles of the API without a person', (select coalesce(string_agg(r.rolname, ', '), '') from pg_auth_members m
  join pg_roles a on a.oid = m.member and a.rolname = 'authenticator' join pg_roles r on r.oid = m.roleid
  where r.rolname <> 'service_role' and not exists (select 1 from tests.people p where p.db_role = r.rolname)), '');
select tests.same('team roles without a person', (select coalesce(string_agg(x[1], ', '), '') from pg_constraint k,
  regexp_matches(pg_get_constraintdef(k.oid), '''([a-z]+)''', 'g') x
  where k.conname = 'nonprofit_team_members_role' and not exists (select 1 from tests.people p where p.team_role = x[1])), '');
select tests.same('tables and views without a check', tests.missing_checks(array['select', 'insert', 'update', 'delete'],
  (select array_agg('public.' || c.relname) from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f'))), '');

select tests.count() as checks;
rollback;
