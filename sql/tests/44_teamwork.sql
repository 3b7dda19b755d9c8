-- Teamwork of staff: assigning requests with a notification, one's own list, and saved replies.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare page jsonb;
begin
  -- To a colleague, who is notified; the page names both.
  perform tests.same('handed over', tests.act('employee', 'select public.assign_request(''r-ax'', ''x'', ''m-manager'')') #>> '{assigned_to,name}', 'manager');
  perform tests.same('told', (select n.code || ' ' || (n.params ->> 'number') || ' ' || (n.params ->> 'name') || ' ' || n.link from public.notifications n
    where n.user_id = tests.id('manager') and n.request_id = 'r-ax'), 'handedOver REQ-900001 employee /nonprofit-request/r-ax');
  perform tests.same('its English', (select n.title from public.notifications n where n.user_id = tests.id('manager') and n.code = 'handedOver'), 'employee handed REQ-900001 to you');
  page := tests.act('manager', 'select public.staff_request(''r-ax'', ''x'')');
  perform tests.same('who', page -> 'assigned_to', '{"id": "m-manager", "name": "manager"}'::jsonb);
  perform tests.same('who could', (select array_agg(c ->> 'name' order by c ->> 'name') from jsonb_array_elements(page -> 'colleagues') c where c ->> 'name' in ('manager', 'manager2', 'employee', 'volunteer', 'gone')),
    array['employee', 'manager', 'manager2']);
  perform tests.same('oneself', (select array_agg(c ->> 'id') from jsonb_array_elements(page -> 'colleagues') c where (c ->> 'you')::boolean), array['m-manager']);
  -- Repeating it, or taking it oneself, notifies nobody.
  perform tests.run('employee', 'select public.assign_request(''r-ax'', ''x'', ''m-manager'')');
  perform tests.run('manager2', 'select public.assign_request(''r-ax'', ''x'', ''m-manager2'')');
  perform tests.same('told once', (select count(*)::int from public.notifications n where n.code = 'handedOver'), 1);

  -- The longest waiting request is chosen among one's own and unassigned ones.
  perform tests.same('a colleague''s', tests.act('manager', 'select public.nonprofit_dashboard(''x'')') -> 'longest_waiting', 'null'::jsonb);
  perform tests.same('waits', tests.act('manager2', 'select public.nonprofit_dashboard(''x'')') #>> '{longest_waiting,request_number}', 'REQ-900001');

  -- one's own
  perform tests.same('mine', tests.act('manager2', 'select public.incoming_page(''x'', mine => true)') -> 'rows' -> 0 ->> 'request_number', 'REQ-900001');
  perform tests.same('mine, counted', (tests.act('manager2', 'select public.incoming_page(''x'', mine => true)') ->> 'total')::int, 1);
  perform tests.same('mine, with a word', (tests.act('manager2', 'select public.incoming_page(''x'', mine => true, search => ''900003'')') ->> 'total')::int, 0);
  perform tests.same('not mine', (tests.act('manager', 'select public.incoming_page(''x'', mine => true)') ->> 'total')::int, 0);
  perform tests.same('named in the list of all', tests.act('manager', 'select public.incoming_page(''x'', search => ''900001'')') #>> '{rows,0,assigned_to}', 'manager2');
  perform tests.same('another organization has its own', tests.act('manager_y', 'select public.staff_request(''r-ax'', ''y'')') -> 'assigned_to', 'null'::jsonb);
  perform tests.check('alice', 'select assigned_to from public.request_nonprofits', 'refused');

  -- Only to staff who may read the request.
  perform tests.tells('manager', 'select public.assign_request(''r-ax'', ''x'', ''m-volunteer'')', 'member_id', 'Choose a colleague who is active.');
  perform tests.check('manager', 'select public.assign_request(''r-ax'', ''x'', ''m-gone'')', 'hint:validation_failed');
  perform tests.check('manager', 'select public.assign_request(''r-ax'', ''x'', ''m-manager_y'')', 'hint:validation_failed');
  perform tests.check('manager', 'select public.assign_request(''r-by'', ''x'', ''m-manager'')', 'hint:request_not_found');
  perform tests.check('manager', 'select public.assign_request(''r-done'', ''x'', ''m-manager'')', 'hint:request_already_decided');
  -- A member who becomes a volunteer may not read requests: theirs are everybody's again, in every place.
  update public.nonprofit_team_members set role = 'volunteer' where id = 'm-manager2';
  perform tests.same('the next one for all', tests.act('manager', 'select public.nonprofit_dashboard(''x'')') #>> '{longest_waiting,request_number}', 'REQ-900001');
  perform tests.same('nobody''s in the list', tests.act('manager', 'select public.incoming_page(''x'', search => ''900001'')') #> '{rows,0,assigned_to}', 'null'::jsonb);
  perform tests.same('nobody''s on its page', tests.act('manager', 'select public.staff_request(''r-ax'', ''x'')') -> 'assigned_to', 'null'::jsonb);
  update public.nonprofit_team_members set role = 'manager' where id = 'm-manager2';
  -- A member who leaves is no longer assigned to anything.
  update public.nonprofit_team_members set is_active = false where id = 'm-manager2';
  perform tests.same('inactive', tests.act('manager', 'select public.staff_request(''r-ax'', ''x'')') -> 'assigned_to', 'null'::jsonb);
  delete from public.nonprofit_team_members where id = 'm-manager2';
  perform tests.same('deleted', (select p.assigned_to from public.request_nonprofits p where (p.request_id, p.nonprofit_id) = ('r-ax', 'x')), null::text);
  perform tests.run('manager', 'select public.assign_request(''r-ax'', ''x'', ''m-manager'')');
  perform tests.same('everybody''s again', tests.act('manager', 'select public.assign_request(''r-ax'', ''x'')') -> 'assigned_to', 'null'::jsonb);

  -- Saved replies: trimmed, unique titles, at most a hundred.
  perform tests.run('manager', 'insert into public.saved_replies (nonprofit_id, kind, title, body) values (''x'', ''info'', ''  The bill '', E''\n Please send it.\n\nThank you. \n'')');
  perform tests.same('kept', (select title || '|' || body from public.saved_replies where nonprofit_id = 'x'), E'The bill|Please send it.\n\nThank you.');
  perform tests.check('admin', 'insert into public.saved_replies (nonprofit_id, kind, title, body) values (''x'', ''info'', ''The bill'', ''b'')', 'state:23505');
  perform tests.check('admin', 'insert into public.saved_replies (nonprofit_id, kind, title, body) values (''x'', ''denial'', ''The bill'', ''b'')', 'rows=1');
  perform tests.check('admin', 'insert into public.saved_replies (nonprofit_id, kind, title, body) values (''x'', ''other'', ''t'', ''b'')', 'state:23514');
  perform tests.check('admin', 'insert into public.saved_replies (nonprofit_id, kind, title, body) values (''x'', ''info'', ''t'', E'' \n '')', 'state:23514');
  perform tests.check('admin', 'insert into public.saved_replies (nonprofit_id, kind, title, body) select ''x'', ''info'', n::text, ''b'' from generate_series(1, 99) n', 'rows=99');
  perform tests.check('admin', 'insert into public.saved_replies (nonprofit_id, kind, title, body) select ''x'', ''info'', n::text, ''b'' from generate_series(1, 100) n', 'hint:too_many_replies');
end $$;

select tests.count() as checks;
rollback;
