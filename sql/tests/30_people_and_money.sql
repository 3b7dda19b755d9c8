-- Accounts, organizations, invitations, closing, donations, donor messages, newsletter.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- Sign-up metadata accepts the roles requester and nonprofit only.
do $$
declare r record;
begin
  for r in select * from (values ('s1', 'requester', 'requester', null), ('s2', 'nonprofit', 'nonprofit', 'admin'), ('s3', 'donor', 'requester', null), ('s4', 'service_role', 'requester', null), ('s5', null, 'requester', null)) t (who, given, role, sub) loop
    perform tests.account(r.who, r.given);
    perform tests.same('role of ' || r.who, (select u.role || coalesce('/' || u.nonprofit_role, '') from public.user_roles u where u.user_id = tests.id(r.who)), r.role || coalesce('/' || r.sub, ''));
  end loop;
  perform tests.same('profile', (select p.first_name || '|' || p.last_name || '|' || p.email from public.profiles p where p.id = tests.id('s1')), 'S1|Tester|s1@tests.example');
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "New Name", "phone": "999", "role": "nonprofit"}' where id = tests.id('s1');
  perform tests.same('My Profile', (select full_name || phone from public.profiles where id = tests.id('s1')), 'New Name999');
  update public.profiles set full_name = 'From the form' where id = tests.id('s1');
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"phone": "1000"}' where id = tests.id('s1');
  perform tests.same('an unchanged name in the metadata does not undo the form', (select full_name || phone from public.profiles where id = tests.id('s1')), 'From the form1000');
  perform tests.same('later metadata gives no role', (select role from public.user_roles where user_id = tests.id('s1')), 'requester');
  -- the role page
  perform tests.check('s1', 'insert into public.user_roles (user_id, role, nonprofit_role) values (' || quote_literal(tests.id('s1')) || ', ''donor'', ''admin'') on conflict (user_id) do update set role = excluded.role, nonprofit_role = excluded.nonprofit_role', 'rows=1');
end $$;

-- What the profile says of a person, then what the account says.
create or replace function tests.names(who text) returns text language sql as $$
  select concat_ws('|', p.full_name, p.first_name, p.last_name, coalesce(p.phone, ''), u.raw_user_meta_data ->> 'full_name', coalesce(u.raw_user_meta_data ->> 'phone', ''))
  from public.profiles p join auth.users u on u.id = p.id where p.id = tests.id(who)
$$;

-- profile form
do $$
declare good jsonb := '{"first_name": "Ada", "last_name": "Love", "birthday": "2000-02-29", "country": "France", "id_type": "Passport", "id_number": "P1"}'; f record; d text; r jsonb;
begin
  r := tests.act('alice', 'select public.save_profile(' || quote_literal(good) || ')');
  perform tests.same('age', (r ->> 'age')::int, extract(year from age(current_date, date '2000-02-29'))::int);
  perform tests.same('id number', r ->> 'id_number', 'P1');
  r := tests.act('alice', 'select public.save_profile(''{"middle_name": "Augusta", "bio": "Hello"}'')');
  r := tests.act('alice', 'select public.save_profile(''{"bio": "Good day"}'')');
  perform tests.same('fields that are left out stay', jsonb_build_array(r -> 'first_name', r -> 'middle_name', r -> 'bio', r -> 'birthday', r -> 'id_number'), '["Ada", "Augusta", "Good day", "2000-02-29", "P1"]');
  -- My Profile and Profile Settings keep one name and one phone number, whichever was saved last.
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "Ada Lovelace", "phone": "207 1"}' where id = tests.id('alice');
  r := tests.act('alice', 'select public.save_profile(''{"bio": "Hello again"}'')');
  perform tests.same('a name of My Profile stays', jsonb_build_array(r -> 'full_name', r -> 'first_name', r -> 'last_name', r -> 'phone'), '["Ada Lovelace", "Ada", "Lovelace", "207 1"]');
  r := tests.act('alice', 'select public.save_profile(''{"first_name": "Ada May", "last_name": "King", "phone": "207 2"}'')');
  perform tests.same('two first names stay together', jsonb_build_array(r -> 'full_name', r -> 'first_name', r -> 'last_name'), '["Ada May King", "Ada May", "King"]');
  perform tests.same('My Profile knows', (select raw_user_meta_data - 'role' from auth.users where id = tests.id('alice')), '{"full_name": "Ada May King", "phone": "207 2"}');
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "Ada Lovelace", "phone": "207 1"}' where id = tests.id('alice');
  perform tests.same('back to the earlier ones', (select full_name || '|' || first_name || '|' || last_name || '|' || phone from public.profiles where id = tests.id('alice')), 'Ada Lovelace|Ada|Lovelace|207 1');
  r := tests.act('alice', 'select public.save_profile(''{"phone": ""}'')');
  perform tests.same('without a number', (select raw_user_meta_data ->> 'phone' from auth.users where id = tests.id('alice')), null::text);
  -- so does whoever writes into the table
  perform tests.run('alice', 'update public.profiles set full_name = ''Grace Hopper'', phone = ''207 3'' where id = auth.uid()');
  perform tests.same('full name and number', tests.names('alice'), 'Grace Hopper|Grace|Hopper|207 3|Grace Hopper|207 3');
  r := tests.act('alice', 'select public.save_profile(''{"bio": "Good evening"}'')');
  perform tests.same('Profile Settings keeps them', tests.names('alice'), 'Grace Hopper|Grace|Hopper|207 3|Grace Hopper|207 3');
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "Ada Lovelace", "phone": "207 1"}' where id = tests.id('alice');
  perform tests.same('and My Profile replaces them', tests.names('alice'), 'Ada Lovelace|Ada|Lovelace|207 1|Ada Lovelace|207 1');
  perform tests.run('alice', 'update public.profiles set last_name = ''King'', phone = '''' where id = auth.uid()');
  perform tests.same('last name; no number', tests.names('alice'), 'Ada King|Ada|King||Ada King|');
  perform tests.run('alice', 'update public.profiles set full_name = ''Ada May King'', first_name = ''Ada May'' where id = auth.uid()');
  perform tests.same('all of them', tests.names('alice'), 'Ada May King|Ada May|King||Ada May King|');
  update auth.users set raw_user_meta_data = 'null' where id = tests.id('alice');
  perform tests.run('alice', 'update public.profiles set full_name = ''Ada King'' where id = auth.uid()');
  perform tests.same('metadata that were null', (select raw_user_meta_data from auth.users where id = tests.id('alice')), '{"full_name": "Ada King"}');
  -- names that end in spaces where they are cut
  update auth.users set raw_user_meta_data = jsonb_build_object('full_name', 'Eve x' || repeat(' ', 100) || 'y') where id = tests.id('alice');
  perform tests.same('a last name of one letter', (select first_name || coalesce(last_name, '') from public.profiles where id = tests.id('alice')), 'Eve');
  update auth.users set raw_user_meta_data = jsonb_build_object('full_name', 'Eve xy' || repeat(' ', 250) || 'y') where id = tests.id('alice');
  perform tests.same('a short one', (select first_name || '|' || last_name || '|' || full_name from public.profiles where id = tests.id('alice')), 'Eve|xy|Eve xy');
  update auth.users set raw_user_meta_data = jsonb_build_object('full_name', 'x' || repeat(' ', 250) || 'y') where id = tests.id('alice');
  perform tests.same('no name', (select full_name from public.profiles where id = tests.id('alice')), 'Eve xy');
  insert into auth.users (instance_id, id, aud, role, email, encrypted_password, raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
  values ('00000000-0000-0000-0000-000000000000', tests.id('spaces'), 'authenticated', 'authenticated', 'spaces@tests.example', 'x', '{}', jsonb_build_object('full_name', 'Eve x' || repeat(' ', 250) || 'y'), now(), now());
  perform tests.same('nor at sign-up', (select full_name || '|' || first_name || coalesce(last_name, '') from public.profiles where id = tests.id('spaces')), 'Eve x|Eve');
  for f in select * from (values ('first_name', 'A', 'First name is required'), ('last_name', '', 'Last name is required'), ('country', ' ', 'Country is required'),
    ('id_type', '', 'ID type is required'), ('id_number', '', 'ID number is required'), ('birthday', '', 'Birthday is required'), ('birthday', '2999-01-01', 'Please enter a valid birthday'), ('birthday', '31/31', 'Please enter a valid birthday')) t (k, v, m)
  loop
    begin
      perform tests.become('alice');
      perform public.save_profile(good || jsonb_build_object(f.k, f.v));
      raise exception '% accepted', f.k;
    exception when sqlstate 'PT422' then
      get stacked diagnostics d = pg_exception_detail;
      perform set_config('role', 'none', true);
      perform tests.same(f.k, d::jsonb -> 'fields', jsonb_build_object(f.k, f.m));
    end;
  end loop;
  perform tests.check('alice', 'update public.profiles set birthday = current_date + 1 where id = auth.uid()', 'hint:validation_failed');
  perform tests.run('alice', 'update public.profiles set email = ''victim@tests.example'' where id = auth.uid()');
  perform tests.same('an address cannot be invented', (select email from public.profiles where id = tests.id('alice')), 'alice@tests.example');
end $$;

-- A provider's name and number, which come with every sign-in, undo neither Profile Settings nor My Profile.
do $$
declare byron jsonb := '{"sub": "g1", "name": "Ada Byron", "full_name": "Ada Byron", "phone": "555"}';
begin
  perform tests.account('ada', 'requester');
  perform tests.run('ada', 'update public.profiles set full_name = ''Ada King'', phone = ''207 2'' where id = auth.uid()');
  insert into auth.identities (provider_id, user_id, identity_data, provider) values ('g1', tests.id('ada'), byron, 'google');
  update auth.users set raw_user_meta_data = raw_user_meta_data || byron where id = tests.id('ada');
  perform tests.same('linking', tests.names('ada'), 'Ada King|Ada|King|207 2|Ada King|207 2');
  perform tests.same('the rest is merged', (select raw_user_meta_data ->> 'name' from auth.users where id = tests.id('ada')), 'Ada Byron');
  perform set_config('private.provider_answered', '', true);
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "Ada Lovelace", "phone": null}' where id = tests.id('ada');
  update auth.identities set identity_data = byron where user_id = tests.id('ada');
  update auth.users set raw_user_meta_data = raw_user_meta_data || byron where id = tests.id('ada');
  perform tests.same('sign-in after My Profile', tests.names('ada'), 'Ada Lovelace|Ada|Lovelace||Ada Lovelace|');
  -- a later transaction
  perform set_config('private.provider_answered', '', true);
  insert into auth.identities (provider_id, user_id, identity_data, provider) values (tests.id('ada'), tests.id('ada'), '{"sub": "e1"}', 'email');
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "Ada Byron", "phone": "555"}' where id = tests.id('ada');
  perform tests.same('My Profile may say the same as the provider', tests.names('ada'), 'Ada Byron|Ada|Byron|555|Ada Byron|555');
  -- The owner of an address gets an account that somebody else has made and named.
  update auth.users set raw_user_meta_data = '{}' where id = tests.id('ada');
  update auth.identities set identity_data = byron || '{"full_name": "Augusta Byron"}' where user_id = tests.id('ada') and provider = 'google';
  update auth.users set raw_user_meta_data = raw_user_meta_data || '{"full_name": "Augusta Byron"}' where id = tests.id('ada');
  perform tests.same('handed over', tests.names('ada'), 'Augusta Byron|Augusta|Byron||Augusta Byron|');
  update auth.users set email_confirmed_at = null where id = tests.id('ada');
  update auth.users set raw_user_meta_data = byron where id = tests.id('ada');
  perform tests.same('an address that nobody has proved', tests.names('ada'), 'Ada Byron|Ada|Byron|555|Ada Byron|555');
end $$;

-- onboarding
do $$
declare o jsonb; id_ text;
begin
  perform tests.check('stranger', 'select public.create_organization(''{"name": " ", "legal_status": "a", "registration_number": "1", "employee_count": "3", "mission": "m"}'')', 'hint:validation_failed');
  perform tests.check('stranger', 'select public.create_organization(''{"name": "n", "legal_status": "a", "registration_number": "1", "employee_count": "3.5", "mission": "m"}'')', 'hint:validation_failed');
  o := tests.act('stranger', 'select public.create_organization(''{"name": "Org S", "legal_status": "a", "registration_number": "1", "employee_count": "3", "mission": "m", "categories": [{"name": "One", "description": "d"}, {"name": "Two", "description": ""}, {"name": "Three", "description": "d"}, {"name": "Four", "description": "d"}]}'')');
  id_ := o ->> 'id';
  perform tests.same('the founder is its admin', (select role || is_active::text from public.nonprofit_team_members where nonprofit_id = id_), 'admintrue');
  perform tests.same('complete categories, at most two', (select array_agg(name order by name) from public.categories where nonprofit_id = id_), array['One', 'Three']);
  perform tests.check('stranger', 'select public.create_organization(''{"name": "n2", "legal_status": "a", "registration_number": "1", "employee_count": "3", "mission": "m"}'')', 'hint:one_organization');
  perform tests.check('anon', 'select id, name from public.nonprofits where name = ''Org S''', 'rows=1');
  -- The plain insert of the spec's section 7.
  perform tests.check('donor', 'insert into public.nonprofits (name, legal_status, registration_number, employee_count, mission, admin_user_id) values (''D'', ''l'', ''r'', 1, ''m'', auth.uid()) returning *', 'rows=1');
  update private.app_settings set value = 'true' where key = 'nonprofit_approval_required';
  perform tests.run('donor', 'insert into public.nonprofits (id, name, legal_status, registration_number, employee_count, mission, admin_user_id) values (''7e570000-0000-4000-8000-00000000000d'', ''D'', ''l'', ''r'', 1, ''m'', auth.uid())');
  perform tests.check('anon', 'select id, name from public.nonprofits where id = ''7e570000-0000-4000-8000-00000000000d''', 'rows=0');
  perform tests.check('donor', 'select * from public.nonprofits where id = ''7e570000-0000-4000-8000-00000000000d''', 'rows=1');
  update private.app_settings set value = 'false' where key = 'nonprofit_approval_required';
end $$;

-- An invitation is mail to a stranger. It waits until the inviter has proved their own address, and the number is
-- limited.
do $$
declare code text; i int; sent int;
begin
  update private.account_addresses set proved_at = null where user_id = tests.id('admin_y');
  perform tests.run('admin_y', 'insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name, role) values (''m-wait'', ''y'', ''wait@tests.example'', ''Waits'', ''employee'')');
  perform tests.same('no mail yet', tests.mails('wait@tests.example', '%'), 0);
  perform tests.same('the member waits', (select invited_at from public.nonprofit_team_members where id = 'm-wait'), null::timestamptz);
  perform tests.check('admin_y', 'select public.resend_team_invitation(''m-wait'')', 'hint:address_unproved');
  perform tests.act('admin_y', 'select public.send_address_code()');
  code := substring(tests.mail_text('admin_y@tests.example', '%code') from 'Your code: ([0-9]{6})');
  perform tests.same('sent with the proof', tests.act('admin_y', 'select public.check_address_code(''admin_y@tests.example'', ' || quote_literal(code) || ')') ->> 'sent_invitations', '1');
  perform tests.same('mailed once', tests.mails('wait@tests.example', 'Join Org Y%'), 1);
  perform tests.check('admin_y', 'select public.resend_team_invitation(''m-wait'')', 'rows=1');
  -- A name that mail programs would turn into a link is left out.
  update public.nonprofits set name = 'Win money at https://evil.example' where id = 'y';
  perform tests.run('admin_y', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''y'', ''lure@tests.example'', ''see www.evil.example'', ''employee'')');
  perform tests.same('no lure', tests.mail_text('lure@tests.example', 'Join A nonprofit%') ~ 'evil', false);
  update public.nonprofits set name = 'Org Y' where id = 'y';
  -- limits: per address, per organization and hour
  update private.app_settings set value = '1' where key = 'rate_limit_factor';
  delete from private.rate_limits;
  for i in 1 .. 5 loop
    update public.nonprofit_team_members set invited_at = now() - interval '10 seconds' where id = 'm-wait';
    perform tests.act('admin_y', 'select public.resend_team_invitation(''m-wait'')');
  end loop;
  update public.nonprofit_team_members set invited_at = now() - interval '10 seconds' where id = 'm-wait';
  perform tests.check('admin_y', 'select public.resend_team_invitation(''m-wait'')', 'hint:rate_limited');
  for i in 1 .. 15 loop
    perform tests.run('admin_y', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name) values (''y'', ''n' || i || '@tests.example'', ''N'')');
  end loop;
  perform tests.check('admin_y', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name) values (''y'', ''n16@tests.example'', ''N'')', 'hint:rate_limited');
  perform tests.check('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name) values (''x'', ''n16@tests.example'', ''N'')', 'rows=1');
  update private.app_settings set value = '1000' where key = 'rate_limit_factor';
end $$;

-- invitations
do $$
declare t text; t2 text; r jsonb; bob text := tests.id('bob')::text;
begin
  perform tests.run('admin', 'insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name, role, user_id, created_at) values (''m-bob'', ''x'', ''bob@tests.example'', ''Bob'', ''manager'', ' || quote_literal(bob) || ', now())');
  perform tests.same('nobody is linked unasked', (select user_id from public.nonprofit_team_members where id = 'm-bob'), 'pending');
  t := substring(tests.mail_text('bob@tests.example', 'Join%') from 'token=([0-9a-f]{64})');
  perform tests.same('open', tests.act('anon', 'select public.team_invitation(' || quote_literal(t) || ')') ->> 'state', 'open');
  perform tests.same('masked', tests.act('anon', 'select public.team_invitation(' || quote_literal(t) || ')') ->> 'email', 'b•••@tests.example');
  perform tests.same('for whom', tests.act('bob', 'select public.team_invitation(' || quote_literal(t) || ')') ->> 'for_you', 'true');
  perform tests.check('alice', 'select public.accept_team_invitation(' || quote_literal(t) || ')', 'hint:invitation_foreign');
  perform tests.check('bob', 'select public.accept_team_invitation(''guess'')', 'hint:invitation_unknown');
  perform tests.check('manager', 'select public.resend_team_invitation(''m-bob'')', 'hint:role_not_allowed');
  update public.nonprofit_team_members set invited_at = now() - interval '9 seconds' where id = 'm-bob';
  perform tests.same('a second press sends nothing', tests.act('admin', 'select public.resend_team_invitation(''m-bob'')'), '{"sent": true}');
  perform tests.same('one mail', tests.mails('bob@tests.example', 'Join%'), 1);
  update public.nonprofit_team_members set invited_at = now() - interval '10 seconds' where id = 'm-bob';
  perform tests.act('admin', 'select public.resend_team_invitation(''m-bob'')');
  perform tests.same('another mail', tests.mails('bob@tests.example', 'Join%'), 2);
  perform tests.check('bob', 'select public.accept_team_invitation(' || quote_literal(t) || ')', 'hint:invitation_expired');
  t2 := substring(tests.mail_text('bob@tests.example', 'Join%') from 'token=([0-9a-f]{64})');
  r := tests.act('bob', 'select public.accept_team_invitation(' || quote_literal(t2) || ')');
  perform tests.same('joined', r, '{"name": "Org X", "role": "manager", "nonprofit_id": "x"}');
  perform tests.same('again is harmless', tests.act('bob', 'select public.accept_team_invitation(' || quote_literal(t2) || ')'), r);
  perform tests.same('the token proved the address', (select proved_at is not null from private.account_addresses where user_id = bob::uuid), true);
  perform tests.same('sub-role', (select role || '/' || nonprofit_role from public.user_roles where user_id = bob::uuid), 'nonprofit/manager');
  perform tests.check('bob', 'select public.nonprofit_budget(''x'')', 'rows=1');
  perform tests.same('me', tests.act('bob', 'select public.me()') #>> '{organization,nonprofit_id}', 'x');
  perform tests.check('admin', 'select public.resend_team_invitation(''m-bob'')', 'hint:already_joined');
  -- Removed in the middle of an action.
  perform tests.run('admin', 'update public.nonprofit_team_members set is_active = false where id = ''m-bob''');
  perform tests.check('bob', 'select public.approve_request(''r-ax'', ''x'', 1)', 'hint:not_a_member');
  perform tests.same('no organization any more', tests.act('bob', 'select public.me()') -> 'organization', 'null');
  -- With a second admin, the first can leave, and the second becomes the founder.
  perform tests.run('admin', 'update public.nonprofit_team_members set role = ''admin'' where id = ''m-manager''');
  perform tests.act('admin', 'select public.leave_organization(''x'')');
  perform tests.same('the seat passed on', (select admin_user_id from public.nonprofits where id = 'x'), tests.id('manager'));
  perform tests.check('admin', 'select public.nonprofit_budget(''x'')', 'hint:not_a_member');
  perform tests.same('the new role shows on the account', (select nonprofit_role from public.user_roles where user_id = tests.id('manager')), 'admin');
  perform tests.check('manager', 'select public.leave_organization(''x'')', 'hint:last_admin');
  -- A founder who is removed founds again at once, even if no other admin can take the position.
  insert into public.nonprofit_team_members (id, nonprofit_id, email, role, user_id, joined_at) values ('m-xy', 'x', 'admin_y@tests.example', 'admin', tests.id('admin_y')::text, now());
  perform tests.run('manager', 'delete from public.nonprofit_team_members where id = ''m-manager''');
  perform tests.same('the seat is free', (select admin_user_id from public.nonprofits where id = 'x'), null::uuid);
  perform tests.check('manager', 'select public.create_organization(''{"name": "N", "legal_status": "l", "registration_number": "1", "employee_count": "1", "mission": "m"}'')', 'rows=1');
  insert into public.nonprofit_team_members (id, nonprofit_id, email, role, user_id, joined_at) values ('m-manager', 'x', 'manager@tests.example', 'admin', tests.id('manager')::text, now());
  update public.nonprofits set admin_user_id = tests.id('manager') where id = 'x';
  delete from public.nonprofit_team_members where id = 'm-xy';
  -- The account itself can be deleted. The organization then has no admin, and nothing else is lost.
  delete from auth.users where id = tests.id('manager');
  perform tests.same('the team row stays without an account', (select user_id || is_active from public.nonprofit_team_members where id = 'm-manager'), 'pendingfalse');
  delete from auth.users where id = tests.id('alice');
  perform tests.same('drafts do not', (select count(*)::int from public.requests where id = 'r-draft'), 0);
  perform tests.same('requests outlive the account', (select count(*)::int from public.requests where id in ('r-ax', 'r-done') and user_id is null), 2);
end $$;

-- closing an organization
do $$
declare r jsonb;
begin
  perform tests.act('manager_y', 'select public.request_more_info(''r-ax'', ''y'', ''papers'')');
  r := tests.act('admin_y', 'select public.close_organization(''y'')');
  perform tests.same('released', r ->> 'requests_released', '2');
  perform tests.same('shared request goes back to x', (select status || coalesce(claimed_by, '-') from public.requests where id = 'r-ax'), 'pending-');
  perform tests.same('open at x again', (select state from public.request_nonprofits where request_id = 'r-ax' and nonprofit_id = 'x'), 'open');
  perform tests.same('the one it had alone ends', (select status || '/' || denial_reason_code from public.requests where id = 'r-by'), 'declined/organization_closed');
  perform tests.check('anon', 'select id, name from public.nonprofits where id = ''y''', 'rows=0');
  perform tests.check('admin_y', 'update public.nonprofits set name = ''z'' where id = ''y''', 'hint:organization_closed');
  perform tests.check('anon', 'select public.submit_request(' || tests.answers('{"nonprofits": ["y"]}') || ')', 'hint:validation_failed');
  perform tests.check('bob', 'select public.resubmit_request(''r-by'')', 'rows=1');
  perform tests.check('admin_y', 'select public.create_organization(''{"name": "n", "legal_status": "a", "registration_number": "1", "employee_count": "3", "mission": "m"}'')', 'rows=1');
end $$;

-- Donations change the figures.
do $$
declare b jsonb; d jsonb; k text := gen_random_uuid();
begin
  update public.nonprofit_team_members set is_active = true where id = 'm-manager2';
  b := tests.act('manager2', 'select public.nonprofit_budget(''x'')');
  perform tests.check('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "0", "email": "p@tests.example", "key": "' || k || '"}'')', 'hint:invalid_amount');
  perform tests.check('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "5.005", "email": "p@tests.example", "key": "' || k || '"}'')', 'hint:invalid_amount');
  perform tests.check('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "five", "email": "p@tests.example", "key": "' || k || '"}'')', 'hint:validation_failed');
  perform tests.check('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "5", "email": "p", "key": "' || k || '"}'')', 'hint:validation_failed');
  d := tests.act('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "$40.50", "email": "pledger@tests.example", "name": "P", "key": "' || k || '"}'')');
  perform tests.same('a repeat is one pledge', tests.act('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "$40.50", "email": "pledger@tests.example", "name": "P", "key": "' || k || '"}'')') ->> 'donation_id', d ->> 'donation_id');
  perform tests.same('thanks by mail', tests.mails('pledger@tests.example', 'Thank you%'), 1);
  perform tests.same('a pledge is no money', (tests.act('manager2', 'select public.nonprofit_budget(''x'')') ->> 'totalDonated')::numeric, (b ->> 'totalDonated')::numeric);
  perform tests.act('manager2', 'select public.receive_donation(' || quote_literal(d ->> 'donation_id') || ')');
  perform tests.same('received', (tests.act('manager2', 'select public.nonprofit_budget(''x'')') ->> 'totalDonated')::numeric, (b ->> 'totalDonated')::numeric + 40.50);
  perform tests.same('more remains', (tests.act('manager2', 'select public.nonprofit_budget(''x'')') ->> 'remainingAvailable')::numeric, (b ->> 'remainingAvailable')::numeric + 40.50);
  perform tests.check('manager2', 'select public.receive_donation(' || quote_literal(d ->> 'donation_id') || ')', 'hint:donation_already_decided');
  perform tests.check('manager2', 'select public.cancel_donation(''g-2'')', 'rows=1');
  -- Cancelled pledges are as old as they are; only open ones come first.
  insert into public.donations (id, nonprofit_id, donor_email, amount, status, pledged_at, received_at) values
    ('g-open', 'x', 'open@tests.example', 5, 'pledged', now() - interval '9 days', null), ('g-new', 'x', 'new@tests.example', 5, 'received', now() - interval '9 days', now()),
    ('g-cancelled', 'x', 'c@tests.example', 5, 'cancelled', now() - interval '8 days', null), ('g-old', 'x', 'old@tests.example', 5, 'received', now() - interval '10 days', now() - interval '9 days');
  perform tests.same('in order', tests.act('manager2', 'select array_agg(x.id) from (select id from public.donations where nonprofit_id = ''x'' and id in (''g-open'', ''g-new'', ''g-cancelled'', ''g-old'') order by waits desc, dated desc, id) x'),
    '["g-open", "g-new", "g-cancelled", "g-old"]'::jsonb);
  delete from public.donations where id in ('g-open', 'g-new', 'g-cancelled', 'g-old');
  perform tests.act('manager2', 'select public.set_budget_allocation(''x'', ''test FOOD'', 2000.25)');
  perform tests.same('one allocation per category', (tests.act('manager2', 'select public.nonprofit_budget(''x'')') ->> 'totalAllocated')::numeric, 2000.25);
  perform tests.act('manager2', 'select public.set_budget_allocation(''x'', ''Test Food'', 0)');
  perform tests.same('and none', (tests.act('manager2', 'select public.nonprofit_budget(''x'')') ->> 'totalAllocated')::numeric, 0);
  perform tests.same('donor sees totals', tests.act('donor', 'select public.donor_dashboard()') - array['donations', 'messages', 'paid_for'], '{"total_donated": 600.00, "people_impacted": 1, "nonprofits_supported": 1, "unread_messages": 1}');
  perform tests.same('never a person', tests.act('donor', 'select public.donor_dashboard()')::text ~* 'alice|bob', false);
end $$;

-- messages to donors
do $$
declare r jsonb; t text; i int;
begin
  perform tests.same('active donors', tests.act('manager2', 'select public.active_donor_count(''x'')'), '2');
  perform tests.check('manager2', 'select public.send_donor_message(''x'', ''a'', ''long enough message'')', 'hint:validation_failed');
  perform tests.check('manager2', 'select public.send_donor_message(''x'', ''ab'', ''too short'')', 'hint:validation_failed');
  r := tests.act('manager2', 'select public.send_donor_message(''x'', ''News & <b>more</b>'', ''A long enough message.'', ''7e570000-0000-4000-8000-00000000aaaa'')');
  perform tests.same('recipients', r ->> 'recipients', '2');
  perform tests.same('a repeat sends nothing', tests.act('manager2', 'select public.send_donor_message(''x'', ''News & <b>more</b>'', ''A long enough message.'', ''7e570000-0000-4000-8000-00000000aaaa'')') ->> 'repeated', 'true');
  perform tests.same('mailed', tests.mails('donor@tests.example', 'News%') + tests.mails('pledger@tests.example', 'News%'), 2);
  perform tests.same('notified', (select count(*)::int from public.notifications where user_id = tests.id('donor') and donor_message_id = r ->> 'id'), 1);
  perform tests.act('donor', 'select public.reply_to_donor_message(' || quote_literal(r ->> 'id') || ', ''My answer'')');
  perform tests.check('manager2', 'select * from public.donor_inbox where unread and "from" = ''Donor Tester'' and subject like ''Re: News%''', 'rows=1');
  perform tests.run('manager2', 'update public.donor_message_replies set read_at = now(), message = ''forged'' where message = ''My answer''');
  perform tests.check('manager2', 'select * from public.donor_inbox where not unread and message = ''My answer''', 'rows=1');
  -- Free text to typed addresses: only after one's own address is proved, with daily limits, and a few times a day per
  -- address.
  update private.account_addresses set proved_at = null where user_id = tests.id('manager2');
  perform tests.check('manager2', 'select public.send_donor_message(''x'', ''News'', ''A long enough message.'')', 'hint:address_unproved');
  update private.account_addresses set proved_at = now() where user_id = tests.id('manager2');
  update private.app_settings set value = '1' where key = 'rate_limit_factor';
  delete from private.rate_limits;
  for i in 1 .. 11 loop perform tests.act('manager2', 'select public.send_donor_message(''x'', ''Daily'', ''A long enough message.'')'); end loop;
  perform tests.same('ten mails', tests.mails('donor@tests.example', 'Daily'), 10);
  perform tests.same('every one in the notifications', (select count(*)::int from public.notifications where user_id = tests.id('donor') and title = 'Daily'), 11);
  insert into public.donations (nonprofit_id, donor_name, donor_email, amount, status, received_at) select 'x', 'G', 'g' || g || '@tests.example', 5, 'received', now() from generate_series(1, 40) g;
  delete from private.rate_limits;
  perform tests.check('manager2', 'select public.send_donor_message(''x'', ''Daily'', ''A long enough message.'')', 'rows=1');
  perform tests.act('manager2', 'select public.send_donor_message(''x'', ''Daily'', ''A long enough message.'')');
  perform tests.check('manager2', 'select public.send_donor_message(''x'', ''Daily'', ''A long enough message.'')', 'hint:rate_limited');
  delete from public.donations where donor_name = 'G';
  update private.app_settings set value = '1000' where key = 'rate_limit_factor';
  t := substring(tests.mail_text('donor@tests.example', 'News%') from 'unsubscribe\?token=([0-9a-f]{64})');
  perform tests.same('wrong token', tests.act('anon', 'select public.unsubscribe(''nope'')'), '{"unsubscribed": false}');
  perform tests.same('unsubscribed', tests.act('anon', 'select public.unsubscribe(' || quote_literal(t) || ')'), '{"unsubscribed": true, "list": "donors", "organization": "Org X"}');
  perform tests.same('no longer active', tests.act('manager2', 'select public.active_donor_count(''x'')'), '1');
end $$;

-- Newsletter: only confirmed addresses are on the list.
do $$
declare t text;
begin
  perform tests.check('anon', 'select public.subscribe_newsletter(''nope'')', 'hint:validation_failed');
  perform tests.same('sent', tests.act('anon', 'select public.subscribe_newsletter('' Reader@tests.example '')'), '{"sent": true}');
  perform tests.same('not yet confirmed', (select confirmed_at from private.subscriptions where email = 'reader@tests.example'), null::timestamptz);
  t := substring(tests.mail_text('reader@tests.example', 'Please confirm%') from 'newsletter\?token=([0-9a-f]{64})');
  perform tests.same('confirmed', tests.act('anon', 'select public.confirm_newsletter(' || quote_literal(t) || ')'), '{"confirmed": true}');
  perform tests.same('the same answer for a known address', tests.act('anon', 'select public.subscribe_newsletter(''reader@tests.example'')'), '{"sent": true}');
  perform tests.same('ended', tests.act('anon', 'select public.unsubscribe(' || quote_literal(t) || ')') ->> 'list', 'newsletter');
end $$;

-- Two addresses that look alike are different: K (U+212A) is not k.
do $$
declare kelvin text := chr(8490) || 'ate';
begin
  perform tests.account('kate', 'requester');
  perform tests.account(kelvin, 'requester');
  perform tests.same('as it is', (select email from private.account_addresses where user_id = tests.id(kelvin)), kelvin || '@tests.example');
  insert into public.donations (nonprofit_id, donor_name, donor_email, amount, status, received_at) values ('x', 'Kate', 'Kate@tests.example', 5, 'received', now());
  update private.account_addresses set proved_at = now() where user_id in (tests.id(kelvin), tests.id('kate'));
  perform tests.same('nothing of hers', tests.act(kelvin, 'select public.claim_guest_requests()') ->> 'claimed_donations', '0');
  perform tests.same('it is hers', tests.act('kate', 'select public.claim_guest_requests()') ->> 'claimed_donations', '1');
end $$;

-- Functions of the product, and what the wizard reads.
do $$
begin
  perform tests.same('get-categories', tests.act('anon', 'select functions."get-categories"(''{}'')') @> '{"categories": [{"id": "t-cat", "name": "Test Food", "description": "For tests"}]}', true);
  perform tests.same('an organization''s own on demand', tests.act('anon', 'select functions."get-categories"(''{"nonprofit_id": "x"}'')') @> '{"categories": [{"id": "t-cat-x"}]}', true);
  perform tests.same('global alone otherwise', tests.act('anon', 'select functions."get-categories"(''{}'')') @> '{"categories": [{"id": "t-cat-x"}]}', false);
  perform tests.same('signed out', tests.act('anon', 'select public.me()'), null::jsonb);
end $$;

select tests.count() as checks;
rollback;
