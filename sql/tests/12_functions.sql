-- Every function × person: who may call it, and the error for others.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- No function runs for those who may not call it.
do $$
declare f text;
begin
  foreach f in array array['my_profile()', 'keep_language(''fr'')', 'save_profile(''{}'')', 'select_nonprofit(''x'')', 'mark_all_notifications_read()', 'claim_guest_requests()', 'save_draft(''{}'')', 'staff_request(''r-ax'', ''x'')', 'mark_request_opened(''r-ax'', ''x'')', 'save_organization(''x'', ''{}'', ''{}'')',
    'resubmit_request(''r-ax'')', 'requester_dashboard()', 'incoming_request_counts(''x'')', 'incoming_page(''x'')', 'assign_request(''r-ax'', ''x'')', 'grants_page(''x'')', 'open_request(''r-ax'', ''x'')',
    'approve_request(''r-ax'', ''x'', 1)', 'deny_request(''r-ax'', ''x'', ''n'')', 'request_more_info(''r-ax'', ''x'', ''n'')', 'nonprofit_dashboard(''x'')', 'create_organization(''{}'')',
    'accept_team_invitation(''t'')', 'resend_team_invitation(''m'')', 'leave_organization(''x'')', 'close_organization(''x'')', 'set_second_approval(''x'', 1)', 'nonprofit_budget(''x'')', 'set_budget_allocation(''x'', ''c'', 1)',
    'record_donation(''x'', 1, ''n'')', 'receive_donation(''g-2'')', 'cancel_donation(''g-2'')', 'record_payout(''r-done'', 1)', 'donor_dashboard()', 'active_donor_count(''x'')',
    'send_donor_message(''x'', ''ss'', ''mmmmmmmmmm'')', 'reply_to_donor_message(''dm-1'', ''x'')', 'mark_donor_message_read(''dm-1'')', 'continue_donor_message(''dm-1'')', 'sweep_guest_files()', 'my_data()', 'close_account(''alice@tests.example'')'] loop
    perform tests.check('anon', 'select public.' || f, 'refused');
  end loop;
  -- one's own by account or by a mailed code
  foreach f in array array['request_detail(''r-ax'')', 'withdraw_request(''r-ax'')', 'answer_request_info(''r-ax'', ''x'')', 'correct_request(''r-ax'', ''{}'')'] loop
    perform tests.check('anon', 'select public.' || f, 'hint:sign_in_required');
    perform tests.check('stranger', 'select public.' || f, 'hint:request_not_found');
  end loop;
  perform tests.matrix('select public.correct_request(''r-ax'', ''{}'')', '{"alice": "rows=1"}', 'hint:request_not_found', 'hint:sign_in_required');
  perform tests.matrix('select public.staff_request(''r-ax'', ''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.mark_request_opened(''r-ax'', ''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.save_organization(''x'', ''{}'', ''{}'')', '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.check('alice', 'select public.sweep_guest_files()', 'refused');
  perform tests.check('alice', 'select private.claim_for(null, null)', 'refused');
  perform tests.check('alice', 'select private.mail(''a@b.co'', ''s'', ''{}'')', 'refused');
  perform tests.check('alice', 'select ferrobase.send_mail(''a@b.co'', ''s'', ''t'', ''h'')', 'refused');
  foreach f in array array['anon', 'alice', 'admin', 'donor'] loop
    perform tests.check(f, 'select ferrobase.send_sms(''+12075550123'', ''t'')', 'refused');
    perform tests.check(f, 'select ferrobase.stop_sms(''+12075550123'', true)', 'refused');
    perform tests.check(f, 'select * from _supavisor.sms_rules', 'refused');
    perform tests.check(f, 'select * from _supavisor.sms_counts', 'refused');
    perform tests.check(f, 'select * from _supavisor.sms_stopped', 'refused');
    perform tests.check(f, 'insert into _supavisor.sms_stopped values (''+12075550123'')', 'refused');
  end loop;
  perform tests.check('service', 'select ferrobase.stop_sms(''+12075550123'', true)', 'refused');
  perform tests.check('service', 'select * from _supavisor.sms_stopped', 'refused');
  -- open to everybody
  foreach f in array array['me()', 'send_request_code(''REQ-900001'')', 'send_request_code(''REQ-900001'', ''sms'')', 'check_request_code(''REQ-900001'', ''1'')', 'end_request_access(''nope'')', 'request_status(''REQ-900001'')', 'create_guest_upload_slot(gen_random_uuid(), ''a.pdf'', ''application/pdf'', 9)', 'remove_guest_upload_slot(gen_random_uuid())',
    'send_address_code(''somebody@tests.example'')', 'check_address_code(''somebody@tests.example'', ''123456'')', 'team_invitation(''nope'')', 'subscribe_newsletter(''reader@tests.example'')',
    'confirm_newsletter(''nope'')', 'unsubscribe(''nope'')', 'submit_request(' || tests.answers() || ')',
    'pledge_donation(jsonb_build_object(''nonprofit_id'', ''x'', ''amount'', ''5'', ''email'', ''p@tests.example'', ''key'', gen_random_uuid()))'] loop
    perform tests.matrix('select public.' || f, '{}', 'rows=1', 'rows=1');
  end loop;
  perform tests.matrix('select functions."get-categories"(''{}'')', '{}', 'rows=1', 'rows=1');
  perform tests.matrix('select public.nonprofits_for(''t-cat'', ''Portland'') limit 2', '{}', 'rows=2', 'rows=2');
  -- on one's own data
  perform tests.matrix('select public.close_account(''alice@tests.example'')', '{"alice": "rows=1"}', 'hint:validation_failed');
  foreach f in array array['my_profile()', 'keep_language(''en'')', 'my_data()', 'select_nonprofit(''x'')', 'mark_all_notifications_read()', 'claim_guest_requests()', 'requester_dashboard()', 'donor_dashboard()', 'mark_donor_message_read(''dm-1'')',
    'save_draft(''{}'')', 'save_profile(''{"first_name": "Ada", "last_name": "Love", "birthday": "2000-02-29", "country": "France", "id_type": "Passport", "id_number": "P1"}'')'] loop
    perform tests.matrix('select public.' || f, '{}', 'rows=1');
  end loop;
  perform tests.matrix('select public.create_organization(''{"name": "N", "legal_status": "l", "registration_number": "1", "employee_count": "1", "mission": "m"}'')',
    '{"admin": "hint:one_organization", "admin_y": "hint:one_organization"}', 'rows=1');
  -- on one's own request or a new one
  foreach f in array array['save_draft(''{"id": "r-draft"}'')', 'submit_request(' || tests.answers('{"draft_id": "r-draft"}') || ')'] loop
    perform tests.matrix('select public.' || f, '{"alice": "rows=1"}', 'hint:request_not_found', case when f like 'submit%' then 'hint:sign_in_required' else 'refused' end);
  end loop;
  perform tests.matrix('select public.resubmit_request(''r-ax'')', '{"alice": "hint:not_resubmittable"}', 'hint:request_not_found');
  perform tests.matrix('select public.answer_request_info(''r-ax'', ''here'')', '{"alice": "hint:request_already_decided"}', 'hint:request_not_found', 'hint:sign_in_required');
  perform tests.matrix('select public.age(p) from public.profiles p where p.id = ' || quote_literal(tests.id('alice')), '{"alice": "rows=1"}');
  foreach f in array array['"needsMoreProof"', '"pendingNotes"', '"denialReason"', 'documents'] loop
    perform tests.matrix('select public.' || f || '(r) from public.requests r where r.id = ''r-ax''', '{"alice": "rows=1"}');
  end loop;
  -- invitations
  perform tests.matrix('select public.accept_team_invitation(''nope'')', '{}', 'hint:invitation_unknown');
  insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name, invited_at) values ('m-new', 'x', 'new@tests.example', 'New', now());
  perform tests.matrix('select public.resend_team_invitation(''m-new'')', '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.active_donor_count(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.cancel_donation(''g-2'')', '{"manager": "rows=1", "admin": "rows=1"}', 'hint:donation_not_found');
  -- staff functions × people
  perform tests.matrix('select public.open_request(''r-ax'', ''x'')', '{"employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.approve_request(''r-ax'', ''x'', 100)', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.deny_request(''r-ax'', ''x'', ''no'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.request_more_info(''r-ax'', ''x'', ''papers'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.nonprofit_budget(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.nonprofit_dashboard(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "rows=1"}', 'hint:not_a_member');
  perform tests.matrix('select public.continue_donor_message(''dm-1'')', '{"manager": "rows=1", "admin": "rows=1"}', 'hint:message_not_found');
  perform tests.matrix('select public.grants_page(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.assign_request(''r-ax'', ''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.incoming_page(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.incoming_request_counts(''x'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "rows=1", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.set_budget_allocation(''x'', ''c'', 10)', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.record_donation(''x'', 10, ''Someone'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.receive_donation(''g-2'')', '{"manager": "rows=1", "admin": "rows=1"}', 'hint:donation_not_found');
  perform tests.matrix('select public.record_payout(''r-done'', 10)', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed"}', 'hint:request_not_found');
  perform tests.matrix('select public.send_donor_message(''x'', ''ss'', ''mmmmmmmmmm'')', '{"manager": "rows=1", "admin": "rows=1", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.close_organization(''x'')', '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.set_second_approval(''x'', 50)', '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('select public.leave_organization(''x'')', '{"admin": "hint:last_admin", "manager": "rows=1", "employee": "rows=1", "volunteer": "rows=1"}', 'hint:not_a_member');
  perform tests.matrix('select public.withdraw_request(''r-ax'')', '{"alice": "rows=1"}', 'hint:request_not_found', 'hint:sign_in_required');
  perform tests.matrix('select public.request_detail(''r-ax'')', '{"alice": "rows=1"}', 'hint:request_not_found', 'hint:sign_in_required');
  perform tests.matrix('select public.reply_to_donor_message(''dm-1'', ''yes'')', '{"donor": "rows=1"}', 'hint:message_not_found');
  -- calling oneself an admin in user_roles grants nothing
  update public.user_roles set role = 'nonprofit', nonprofit_role = 'admin' where user_id = tests.id('stranger');
  perform tests.check('stranger', 'select public.approve_request(''r-ax'', ''x'', 1)', 'hint:not_a_member');
  perform tests.check('stranger', 'select * from public.requests', 'rows=0');
  -- a closed organization, and an unknown one
  perform tests.check('manager', 'select public.nonprofit_budget(''nope'')', 'hint:organization_not_found');
  update public.nonprofits set status = 'closed' where id = 'x';
  perform tests.check('manager', 'select public.approve_request(''r-ax'', ''x'', 1)', 'hint:organization_closed');
  perform tests.check('anon', 'select id from public.nonprofits where id = ''x''', 'rows=0');
end $$;

-- Every function that the API's roles may call has been checked for everybody. Those in `private` are helpers of
-- policies and triggers that the API cannot reach; they are excluded here by name.
select tests.same('functions without a check', tests.missing_checks(array['execute'], (select array_agg(distinct n.nspname || '.' || quote_ident(p.proname))
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('public', 'functions')
    and (has_function_privilege('anon', p.oid, 'execute') or has_function_privilege('authenticated', p.oid, 'execute')))), '');
select tests.same('helpers that the API''s roles may run', (select array_agg(p.proname::text order by p.proname) from pg_proc p where p.pronamespace = 'private'::regnamespace
    and (has_function_privilege('anon', p.oid, 'execute') or has_function_privilege('authenticated', p.oid, 'execute'))),
  array['amount_for_part', 'amount_number', 'amount_text', 'clean', 'client_id', 'covers', 'fail', 'fail_fields', 'guest_slot_is_open', 'hold_draft_place', 'is_client', 'is_staff', 'is_staff_somewhere', 'lock_request', 'may_read_document', 'may_remove_document',
    'may_upload_document', 'my_admin_organizations', 'my_managed_organizations', 'my_organizations', 'my_staff_organizations', 'organization_name', 'own_document_facts', 'owns_request', 'part_shows_person', 'place_parts', 'plain_type', 'require_proof_places', 'setting',
    'staff_may_see', 'staff_may_see_person', 'status_for_part', 'touch', 'valid_email']);

select tests.count() as checks;
rollback;
