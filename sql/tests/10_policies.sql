-- Every table × verb × person: who may, who may not, and what the refused one sees.
-- 'rows=0': the statement is allowed and row level security hides every row; 'refused': 42501.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare alice text := quote_literal(tests.id('alice')); q text;
begin
  -- user_roles
  perform tests.matrix('select * from public.user_roles where user_id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('select * from public.user_roles', '{}', 'rows=1');
  perform tests.matrix('insert into public.user_roles (user_id, role) values (' || alice || ', ''donor'') on conflict (user_id) do update set role = excluded.role', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('update public.user_roles set role = ''nonprofit'', nonprofit_role = ''admin'' where user_id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('delete from public.user_roles where user_id = ' || alice, '{}', 'refused');
  perform tests.check('alice', 'update public.user_roles set role = ''root''', 'state:23514');
  -- profiles and ID numbers
  perform tests.matrix('select * from public.profiles where id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('update public.profiles set bio = ''x'' where id = ' || alice, '{"alice": "rows=1"}');
  perform tests.matrix('delete from public.profiles where id = ' || alice, '{}', 'refused');
  perform tests.matrix('select * from public.profile_identities', '{"alice": "rows=1"}');
  perform tests.check('service', 'select * from public.profile_identities', 'refused');
  perform tests.matrix('update public.profile_identities set id_number = ''9''', '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.profile_identities (user_id, id_type, id_number) values (' || quote_literal(tests.id('bob')) || ', ''a'', ''b'')', '{"bob": "rows=1"}', 'refused');
  perform tests.matrix('delete from public.profile_identities', '{"alice": "rows=1"}');
  -- nonprofits
  perform tests.matrix('select * from public.nonprofits where id in (''x'', ''y'')', '{}', 'rows=2', 'rows=2');
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
  -- requests: Alice has three, of which x sees two and y one; Bob's goes to y
  perform tests.matrix('select * from public.requests', '{"alice": "rows=3", "bob": "rows=1", "employee": "rows=2", "manager": "rows=2", "admin": "rows=2", "manager_y": "rows=2", "admin_y": "rows=2"}');
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
  perform tests.matrix('select * from public.request_nonprofits where request_id = ''r-ax''', '{"alice": "rows=2", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}');
  foreach q in array array['insert into public.request_nonprofits (request_id, nonprofit_id) values (''r-by'', ''x'')', 'update public.request_nonprofits set state = ''claimed''', 'delete from public.request_nonprofits',
    'insert into public.request_events (request_id, type, actor) values (''r-ax'', ''approved'', ''system'')', 'update public.request_events set note = ''x''', 'delete from public.request_events'] loop
    perform tests.matrix(q, '{}', 'refused');
  end loop;
  -- request_events: what only the staff of x wrote down is theirs
  perform tests.matrix('select * from public.request_events where request_id = ''r-ax''', '{"alice": "rows=1", "employee": "rows=2", "manager": "rows=2", "admin": "rows=2", "manager_y": "rows=1", "admin_y": "rows=1"}');
  insert into public.request_events (request_id, type, actor, nonprofit_id, note) values ('r-ax', 'info_requested', 'nonprofit', 'x', 'for Alice alone');
  perform tests.matrix('select * from public.request_events where note = ''for Alice alone''', '{"alice": "rows=1", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1"}');
  -- request_documents
  perform tests.matrix('select * from public.request_documents', '{"alice": "rows=1", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}');
  perform tests.matrix('insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-draft/new.pdf'', ''application/pdf'', 9)', '{"alice": "rows=1"}', 'hint:request_not_found');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-draft/lost.pdf'', ''application/pdf'', 9)', 'hint:document_missing');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-ax/a.pdf'', ''application/pdf'', 9)', 'hint:document_path');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.exe'', ''r-draft/new.pdf'', ''application/x-msdownload'', 9)', 'state:23514');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''n.pdf'', ''r-draft/new.pdf'', ''application/pdf'', 10485761)', 'state:23514');
  perform tests.check('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-ax'', ''n.pdf'', ''r-ax/n.pdf'', ''application/pdf'', 9)', 'hint:documents_not_wanted');
  perform tests.matrix('update public.request_documents set name = ''x''', '{}', 'refused');
  perform tests.matrix('delete from public.request_documents', '{}');
  -- notifications
  perform tests.matrix('select * from public.notifications where id = ''n-alice''', '{"alice": "rows=1"}');
  perform tests.matrix('update public.notifications set read = true where id = ''n-alice''', '{"alice": "rows=1"}');
  perform tests.matrix('insert into public.notifications (user_id, title, message) values (' || alice || ', ''t'', ''m'')', '{}', 'refused');
  perform tests.matrix('delete from public.notifications where id = ''n-alice''', '{"alice": "rows=1"}');
  -- money: managers of x alone; nobody writes directly
  foreach q in array array['budget_allocations', 'budget_transactions', 'donations'] loop
    perform tests.matrix('insert into public.' || q || ' (nonprofit_id, amount) values (''x'', 1)', '{}', 'refused');
    perform tests.matrix('update public.' || q || ' set amount = 1', '{}', 'refused');
    perform tests.matrix('delete from public.' || q, '{}', 'refused');
  end loop;
  perform tests.matrix('select * from public.budget_allocations', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('select * from public.budget_transactions', '{"manager": "rows=2", "admin": "rows=2"}');
  perform tests.matrix('select * from public.donations', '{"donor": "rows=1", "manager": "rows=2", "admin": "rows=2"}');
  -- donor messages
  perform tests.matrix('select * from public.donor_messages', '{"donor": "rows=1", "manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('insert into public.donor_messages (nonprofit_id, subject, message) values (''x'', ''sss'', ''mmmmmmmmmmmm'')', '{}', 'refused');
  perform tests.matrix('delete from public.donor_messages', '{}', 'refused');
  perform tests.matrix('select * from public.donor_message_recipients', '{"donor": "rows=1"}');
  perform tests.matrix('update public.donor_message_recipients set read_at = now()', '{"donor": "rows=1"}');
  perform tests.matrix('insert into public.donor_message_recipients (message_id, donor_email) values (''dm-1'', ''a@b.co'')', '{}', 'refused');
  perform tests.matrix('select * from public.donor_message_replies', '{"donor": "rows=1", "manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('update public.donor_message_replies set read_at = now()', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('insert into public.donor_message_replies (message_id, nonprofit_id, from_name, subject, message) values (''dm-1'', ''x'', ''a'', ''b'', ''c'')', '{}', 'refused');
  -- views
  perform tests.matrix('select * from public.my_requests', '{"alice": "rows=2", "bob": "rows=1"}');
  perform tests.matrix('select * from public.incoming_requests', '{"employee": "rows=2", "manager": "rows=2", "admin": "rows=2", "manager_y": "rows=2", "admin_y": "rows=2"}');
  perform tests.matrix('select * from public.approved_grants', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('select * from public.donor_inbox', '{"manager": "rows=1", "admin": "rows=1"}');
  perform tests.matrix('select * from public.my_donor_messages', '{"donor": "rows=1"}');
  -- what the API must not reach at all
  foreach q in array array['private.app_settings', 'private.team_invitations', 'private.guest_upload_slots', 'private.subscriptions', 'private.address_codes', 'private.address_proofs', 'private.rate_limits', 'private.account_addresses'] loop
    perform tests.matrix('select * from ' || q, '{}', 'refused');
  end loop;
end $$;

-- what holds for everything, later additions included
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
  perform tests.same('functions that anon may call', (select array_agg(p.proname::text order by p.proname) from pg_proc p
      where p.pronamespace = 'public'::regnamespace and has_function_privilege('anon', p.oid, 'execute')),
    array['check_address_code', 'confirm_newsletter', 'create_guest_upload_slot', 'me', 'pledge_donation', 'remove_guest_upload_slot', 'request_status',
      'send_address_code', 'submit_request', 'subscribe_newsletter', 'team_invitation', 'unsubscribe']);
  perform tests.same('tables that anon may touch', (select array_agg(c.relname::text order by c.relname) from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v') and has_table_privilege('anon', c.oid, 'select, insert, update, delete')),
    array['categories', 'denial_reasons', 'nonprofits']);
  perform tests.same('foreign keys without an index on their column', (
    select coalesce(string_agg(k.conrelid::regclass || '.' || k.conname, ', '), '') from pg_constraint k
    where k.contype = 'f' and k.connamespace = 'public'::regnamespace and k.confdeltype in ('c', 'n') and k.confrelid <> 'public.denial_reasons'::regclass
      and not exists (select 1 from pg_index i where i.indrelid = k.conrelid and i.indkey[0] = k.conkey[1])), '');
end $$;

-- files
do $$
begin
  perform tests.matrix('select * from storage.objects where name = ''r-ax/a.pdf''', '{"alice": "rows=1", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''request-documents'', ''r-draft/b.pdf'')', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''request-documents'', ''r-ax/b.pdf'')', '{}', 'refused');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''request-documents'', ''guest/b.pdf'')', '{}', 'refused');
  perform tests.matrix('update storage.objects set name = ''r-ax/c.pdf'' where name = ''r-ax/a.pdf''', '{}', 'rows=0', 'rows=0');
end $$;
do $$
begin
  perform set_config('storage.allow_delete_query', 'true', true);
  perform tests.matrix('delete from storage.objects where name = ''r-ax/a.pdf''', '{}', 'rows=0', 'rows=0');
  perform tests.matrix('delete from storage.objects where name = ''r-draft/new.pdf''', '{"alice": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('select * from storage.objects where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('alice') || '/%'),
    '{"alice": "rows=1", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('select * from storage.objects where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('bob') || '/%'),
    '{"bob": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''profile-photos'', ' || quote_literal(tests.id('alice') || '/2.png') || ')', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('delete from storage.objects where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('alice') || '/%'), '{"alice": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''logos'', ''x/2.png'')', '{"admin": "rows=1"}', 'refused');
  perform tests.matrix('delete from storage.objects where name = ''x/logo.png''', '{"admin": "rows=1"}', 'rows=0', 'rows=0');
end $$;

-- functions: nothing of ours runs for those who may not call it
do $$
declare f text;
begin
  foreach f in array array['my_profile()', 'save_profile(''{}'')', 'select_nonprofit(''x'')', 'mark_all_notifications_read()', 'claim_guest_requests()', 'save_draft(''{}'')', 'request_detail(''r-ax'')',
    'withdraw_request(''r-ax'')', 'resubmit_request(''r-ax'')', 'answer_request_info(''r-ax'', ''x'')', 'requester_dashboard()', 'incoming_request_counts(''x'')', 'open_request(''r-ax'', ''x'')',
    'approve_request(''r-ax'', ''x'', 1)', 'deny_request(''r-ax'', ''x'', ''n'')', 'request_more_info(''r-ax'', ''x'', ''n'')', 'nonprofit_dashboard(''x'')', 'create_organization(''{}'')',
    'accept_team_invitation(''t'')', 'leave_organization(''x'')', 'close_organization(''x'')', 'set_second_approval(''x'', 1)', 'nonprofit_budget(''x'')', 'set_budget_allocation(''x'', ''c'', 1)',
    'record_donation(''x'', 1, ''n'')', 'receive_donation(''g-2'')', 'cancel_donation(''g-2'')', 'record_payout(''r-done'', 1)', 'donor_dashboard()', 'active_donor_count(''x'')',
    'send_donor_message(''x'', ''ss'', ''mmmmmmmmmm'')', 'reply_to_donor_message(''dm-1'', ''x'')', 'mark_donor_message_read(''dm-1'')', 'sweep_guest_files()'] loop
    perform tests.check('anon', 'select public.' || f, 'refused');
  end loop;
  perform tests.check('alice', 'select public.sweep_guest_files()', 'refused');
  perform tests.check('alice', 'select private.claim_for(null, null)', 'refused');
  perform tests.check('alice', 'select private.mail(''a@b.co'', ''s'', ''{}'')', 'refused');
  perform tests.check('alice', 'select ferrobase.send_mail(''a@b.co'', ''s'', ''t'', ''h'')', 'refused');
  -- staff functions × people
  perform tests.matrix('select public.open_request(''r-ax'', ''x'')', '{"employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.approve_request(''r-ax'', ''x'', 100)', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.deny_request(''r-ax'', ''x'', ''no'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.request_more_info(''r-ax'', ''x'', ''papers'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.nonprofit_budget(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.nonprofit_dashboard(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "rows=1"}', 'hint:not_a_member');
  perform tests.matrix('select public.incoming_request_counts(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.set_budget_allocation(''x'', ''c'', 10)', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.record_donation(''x'', 10, ''Someone'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.receive_donation(''g-2'')', '{"manager": "rows=1", "admin": "rows=1"}', 'hint:donation_not_found');
  perform tests.matrix('select public.record_payout(''r-done'', 10)', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed"}', 'hint:request_not_found');
  perform tests.matrix('select public.send_donor_message(''x'', ''ss'', ''mmmmmmmmmm'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.close_organization(''x'')', '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.set_second_approval(''x'', 50)', '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.leave_organization(''x'')', '{"admin": "hint:last_admin", "manager": "rows=1", "employee": "rows=1", "volunteer": "rows=1"}', 'hint:not_a_member');
  perform tests.matrix('select public.withdraw_request(''r-ax'')', '{"alice": "rows=1"}', 'hint:request_not_found');
  perform tests.matrix('select public.request_detail(''r-ax'')', '{"alice": "rows=1"}', 'hint:request_not_found');
  perform tests.matrix('select public.reply_to_donor_message(''dm-1'', ''yes'')', '{"donor": "rows=1"}', 'hint:message_not_found');
  -- calling oneself admin on user_roles opens nothing
  update public.user_roles set role = 'nonprofit', nonprofit_role = 'admin' where user_id = tests.id('stranger');
  perform tests.check('stranger', 'select public.approve_request(''r-ax'', ''x'', 1)', 'hint:not_a_member');
  perform tests.check('stranger', 'select * from public.requests', 'rows=0');
  -- a closed organization and an unknown one
  perform tests.check('manager', 'select public.nonprofit_budget(''nope'')', 'hint:organization_not_found');
  update public.nonprofits set status = 'closed' where id = 'x';
  perform tests.check('manager', 'select public.approve_request(''r-ax'', ''x'', 1)', 'hint:organization_closed');
  perform tests.check('anon', 'select * from public.nonprofits where id = ''x''', 'rows=0');
end $$;

select tests.count() as checks;
rollback;
