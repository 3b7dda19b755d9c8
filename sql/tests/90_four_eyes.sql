-- Nobody decides on, or pays out, their own request; a colleague does.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare r jsonb; call text; mine constant text[] := array['approve_request(''r-ax'', ''x'', 100)', 'approve_request(''REQ-900001'', ''x'', 100000, true)',
  'deny_request(''r-ax'', ''x'', ''no'')', 'request_more_info(''r-ax'', ''x'', ''The letter, please'')'];
begin
  -- Alice, who asked x for help, works there too.
  insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name, role, user_id, is_active, invited_at, joined_at)
  values ('m-alice', 'x', 'alice@tests.example', 'alice', 'manager', tests.id('alice')::text, true, now(), now());
  foreach call in array mine loop
    perform tests.check('alice', 'select public.' || call, 'hint:own_request');
    perform tests.check('manager', 'select public.' || call, 'rows=1');
  end loop;
  perform tests.check('alice', 'select public.record_payout(''r-done'', 10)', 'hint:own_request');
  perform tests.check('manager', 'select public.record_payout(''r-done'', 10)', 'rows=1');

  -- She can read it, and is told that she may not decide on it.
  r := tests.act('alice', 'select public.open_request(''r-ax'', ''x'')');
  perform tests.same('it is her own', r ->> 'own', 'true');
  perform tests.same('nothing to press', r -> 'can', '{"approve": false, "deny": false, "ask_info": false, "second_approval": false}'::jsonb);
  r := tests.act('manager', 'select public.open_request(''r-ax'', ''x'')');
  perform tests.same('not his', r ->> 'own', 'false');
  perform tests.same('his to answer', r #>> '{can,approve}', 'true');

  -- An admin is no exception. For an employee, the role's error comes first.
  update public.nonprofit_team_members set role = 'admin' where id = 'm-alice';
  perform tests.check('alice', 'select public.approve_request(''r-ax'', ''x'', 100)', 'hint:own_request');
  update public.nonprofit_team_members set role = 'employee' where id = 'm-alice';
  perform tests.check('alice', 'select public.approve_request(''r-ax'', ''x'', 100)', 'hint:role_not_allowed');
  update public.nonprofit_team_members set role = 'manager' where id = 'm-alice';

  -- The second approval is a decision too.
  perform tests.act('admin', 'select public.set_second_approval(''x'', 50)');
  perform tests.act('manager', 'select public.approve_request(''r-ax'', ''x'', 100)');
  perform tests.check('alice', 'select public.approve_request(''r-ax'', ''x'', 100)', 'hint:own_request');
  r := tests.act('alice', 'select public.open_request(''r-ax'', ''x'')');
  perform tests.same('nor the second', r #>> '{can,second_approval}', 'false');
  perform tests.check('manager2', 'select public.approve_request(''r-ax'', ''x'', 100)', 'rows=1');

  -- A request sent signed out from her address is hers; one from another address is not.
  update public.requests set user_id = null, email = 'ALICE@tests.example' where id = 'r-ax';
  perform tests.check('alice', 'select public.deny_request(''r-ax'', ''x'', ''no'')', 'hint:own_request');
  update public.requests set email = 'neighbour@tests.example' where id = 'r-ax';
  perform tests.check('alice', 'select public.deny_request(''r-ax'', ''x'', ''no'')', 'rows=1');
  update public.requests set user_id = tests.id('alice'), email = 'alice@tests.example' where id = 'r-ax';

  -- Her rights as the requester stay.
  perform tests.check('alice', 'select public.request_detail(''r-ax'')', 'rows=1');
  perform tests.check('alice', 'select public.withdraw_request(''r-ax'')', 'rows=1');
  -- A closing organization gives it back like any other.
  perform tests.check('admin', 'select public.close_organization(''x'')', 'rows=1');
end $$;

select tests.count() as checks;
rollback;
