-- Other content under the same key is refused with an error, never treated as the first. Donor mail is sent in batches.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

do $$
declare
  k constant text := '11111111-1111-4111-8111-111111111111'; one jsonb; two jsonb; n int;
begin
  -- a request, signed out and signed in
  one := tests.act('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'email', 'guest@tests.example')) || ')');
  two := tests.act('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'email', 'guest@tests.example', 'step', 4, 'form', 'single')) || ')');
  perform tests.same('the same request', two - 'repeated', one - 'repeated');
  perform tests.check('anon', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', k, 'email', 'guest@tests.example', 'description', 'We need food for three weeks.')) || ')', 'hint:key_reused');
  perform tests.same('and told which', current_setting('tests.last_detail')::jsonb ->> 'request_number', one ->> 'request_number');
  perform tests.same('nothing changed', (select description from public.requests where id = one ->> 'id'), 'We need food for two weeks.');
  one := tests.act('alice', 'select public.submit_request(' || tests.answers('{"key": "22222222-2222-4222-8222-222222222222"}') || ')');
  perform tests.check('alice', 'select public.submit_request(' || tests.answers('{"key": "22222222-2222-4222-8222-222222222222", "amount": "900"}') || ')', 'hint:key_reused');
  perform tests.check('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', '22222222-2222-4222-8222-222222222222', 'draft_id', one ->> 'id')) || ')', 'rows=1');

  -- a payout
  perform tests.act('manager', format('select public.record_payout(''r-done'', 100, null, %L)', k));
  perform tests.check('manager', format('select public.record_payout(''r-done'', 120, null, %L)', k), 'hint:key_reused');
  perform tests.check('manager', format('select public.record_payout(''r-done'', 100, ''cheque'', %L)', k), 'hint:key_reused');
  perform tests.same('paid once', (select amount_paid from public.requests where id = 'r-done'), 100.00);

  -- a donation, a pledge
  perform tests.act('manager', format('select public.record_donation(''x'', 5, ''Ann'', key => %L)', k));
  perform tests.check('manager', format('select public.record_donation(''x'', 5, ''Ann'', key => %L)', k), 'rows=1');
  perform tests.check('manager', format('select public.record_donation(''x'', 6, ''Ann'', key => %L)', k), 'hint:key_reused');
  perform tests.act('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "5", "email": "p@tests.example", "key": "33333333-3333-4333-8333-333333333333"}'')');
  perform tests.check('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "$5.00", "email": "P@tests.example", "key": "33333333-3333-4333-8333-333333333333"}'')', 'rows=1');
  perform tests.check('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "50", "email": "p@tests.example", "key": "33333333-3333-4333-8333-333333333333"}'')', 'hint:key_reused');

  -- donor mail and its answer
  perform tests.act('manager', format('select public.send_donor_message(''x'', ''Spring'', ''Thank you for giving'', %L)', k));
  perform tests.check('manager', format('select public.send_donor_message(''x'', ''Spring'', ''Thank you for giving'', %L)', k), 'rows=1');
  perform tests.check('manager', format('select public.send_donor_message(''x'', ''Spring'', ''Thank you all for giving'', %L)', k), 'hint:key_reused');
  perform tests.act('donor', format('select public.reply_to_donor_message(''dm-1'', ''Gladly again'', %L)', k));
  perform tests.check('donor', format('select public.reply_to_donor_message(''dm-1'', ''Not again'', %L)', k), 'hint:key_reused');

  -- 350 more donors: the first hundred at once, the rest in batches, each once.
  insert into public.donations (nonprofit_id, donor_name, donor_email, amount, status, received_at)
  select 'x', 'Giver', 'giver' || i || '@tests.example', 5, 'received', now() from generate_series(1, 350) i;
  update public.nonprofits set created_at = now() - interval '2 days' where id = 'x';
  n := tests.mails('giver%', 'Summer');
  one := tests.act('manager', 'select public.send_donor_message(''x'', ''Summer'', ''Thank you for giving'')');
  perform tests.same('begun', (one ->> 'mailed')::int, 100);
  perform tests.same('of', (one ->> 'recipients')::int, (select count(*)::int from private.active_donors('x')));
  perform tests.check('manager_y', format('select public.continue_donor_message(%L)', one ->> 'id'), 'hint:message_not_found');
  perform tests.check('employee', format('select public.continue_donor_message(%L)', one ->> 'id'), 'hint:message_not_found');
  perform tests.same('on', (tests.act('manager', format('select public.continue_donor_message(%L)', one ->> 'id')) ->> 'mailed')::int, 300);
  -- Donors who unsubscribe in between get none.
  update private.subscriptions set unsubscribed_at = now() where list = 'x' and email = 'nobody';
  update public.donor_messages set created_at = now() - interval '1 hour' where id = one ->> 'id';
  perform private.mail_waiting_donors();
  perform tests.same('all', (select mailed_count from public.donor_messages where id = one ->> 'id'), (one ->> 'recipients')::int);
  perform tests.same('each once', (select count(*) - count(distinct recipient) from _supavisor.outbox where subject = 'Summer'), 0::bigint);
  perform tests.same('every one', (select count(*)::int from _supavisor.outbox where subject = 'Summer'), (one ->> 'recipients')::int);
  perform tests.same('nothing is left', (tests.act('manager', format('select public.continue_donor_message(%L)', one ->> 'id')) ->> 'mailed')::int, (one ->> 'recipients')::int);
end $$;

select tests.count() as checks;
rollback;
