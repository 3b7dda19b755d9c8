-- A request repeated because its answer was lost takes effect once.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

do $$
declare
  a constant text := '11111111-1111-4111-8111-111111111111'; b constant text := '22222222-2222-4222-8222-222222222222';
  c text; one jsonb; two jsonb; n int;
begin
  -- a payout
  one := tests.act('manager', format('select public.record_payout(''r-done'', 100, null, %L)', a));
  two := tests.act('manager', format('select public.record_payout(''r-done'', 100, null, %L)', a));
  perform tests.same('first', one, '{"granted": 250, "paid": 100, "outstanding": 150, "repeated": false}'::jsonb);
  perform tests.same('again', two, '{"granted": 250, "paid": 100, "outstanding": 150, "repeated": true}'::jsonb);
  two := tests.act('manager', format('select public.record_payout(''r-done'', 150, null, %L)', b));
  perform tests.same('another', two ->> 'outstanding', '0.00');
  two := tests.act('manager', format('select public.record_payout(''r-done'', 150, null, %L)', b));
  perform tests.same('the last one again says what it said, not that nothing is left', two ->> 'repeated', 'true');
  perform tests.same('payouts', (select count(*) from public.budget_transactions where request_id = 'r-done' and type = 'Payout'), 2::bigint);
  perform tests.same('events', (select count(*) from public.request_events where request_id = 'r-done' and type = 'paid'), 2::bigint);

  -- a donor's answer
  one := tests.act('donor', format('select public.reply_to_donor_message(''dm-1'', ''Gladly again'', %L)', a));
  two := tests.act('donor', format('select public.reply_to_donor_message(''dm-1'', ''Gladly again'', %L)', a));
  perform tests.same('the same answer', two, jsonb_build_object('id', one ->> 'id', 'repeated', true));
  perform tests.same('answers', (select count(*) from public.donor_message_replies where message = 'Gladly again'), 1::bigint);

  -- A first save: the same key of the same person is the same draft; another person's key is another draft.
  one := tests.act('alice', format('select public.save_draft(%L)', jsonb_build_object('key', a, 'category_id', 't-cat')));
  two := tests.act('alice', format('select public.save_draft(%L)', jsonb_build_object('key', a, 'category_id', 't-cat', 'description', 'more')));
  perform tests.same('the same draft', two ->> 'id', one ->> 'id');
  perform tests.same('with what was typed since', (select description from public.requests where id = one ->> 'id'), 'more');
  perform tests.same('whose id does not tell the key', (one ->> 'id') = a, false);
  two := tests.act('bob', format('select public.save_draft(%L)', jsonb_build_object('key', a)));
  perform tests.same('another person''s', (two ->> 'id') = (one ->> 'id'), false);
  two := tests.act('alice', format('select public.save_draft(%L)', jsonb_build_object('key', b)));
  perform tests.same('another key''s', (two ->> 'id') = (one ->> 'id'), false);
  perform tests.act('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', a, 'draft_id', one ->> 'id')) || ')');
  perform tests.check('alice', format('select public.save_draft(%L)', jsonb_build_object('key', a, 'description', 'late')), 'hint:request_already_decided');

  -- A first save whose answer was lost, followed by the request: one row, and no draft is left.
  c := '33333333-3333-4333-8333-333333333333';
  one := tests.act('alice', format('select public.save_draft(%L)', jsonb_build_object('key', c, 'description', 'begun')));
  n := (select count(*) from public.requests where user_id = tests.id('alice') and status = 'draft');
  perform tests.act('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', c)) || ')');
  perform tests.same('the draft went out', (select submit_key::text from public.requests where id = one ->> 'id'), c);
  perform tests.same('as a request', (select status::text from public.requests where id = one ->> 'id'), 'pending');
  perform tests.same('one draft fewer', (select count(*) from public.requests where user_id = tests.id('alice') and status = 'draft')::int, n - 1);
  perform tests.same('to its nonprofits', (select count(*) from public.request_nonprofits where request_id = one ->> 'id') > 0, true);
  -- The save arrives after the request that overtook it.
  c := '44444444-4444-4444-8444-444444444444';
  perform tests.act('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', c)) || ')');
  perform tests.check('alice', format('select public.save_draft(%L)', jsonb_build_object('key', c, 'description', 'late')), 'hint:request_already_decided');
  -- Another person's key refers to nothing of mine, nor to a guest's.
  c := '55555555-5555-4555-8555-555555555555';
  one := tests.act('alice', format('select public.save_draft(%L)', jsonb_build_object('key', c, 'description', 'mine')));
  perform tests.act('bob', 'select public.submit_request(' || tests.answers(jsonb_build_object('key', c)) || ')');
  perform tests.same('mine is still a draft', (select status::text from public.requests where id = one ->> 'id'), 'draft');

  -- the answer to a question
  perform tests.act('manager', 'select public.request_more_info(''r-ax'', ''x'', ''The letter?'')');
  one := tests.act('alice', 'select public.answer_request_info(''r-ax'', '' I have none. '')');
  two := tests.act('alice', 'select public.answer_request_info(''r-ax'', ''I have none.'')');
  perform tests.same('first', one ->> 'repeated', 'false');
  perform tests.same('again', two ->> 'repeated', 'true');
  perform tests.same('told once', (select count(*) from public.request_events where request_id = 'r-ax' and type = 'info_answered'), 1::bigint);
  perform tests.check('alice', 'select public.answer_request_info(''r-ax'', ''Other words'')', 'hint:request_already_decided');
  -- A second question needs a second answer, even with the same words.
  perform tests.act('manager', 'select public.request_more_info(''r-ax'', ''x'', ''Any letter?'')');
  one := tests.act('alice', 'select public.answer_request_info(''r-ax'', ''I have none.'')');
  perform tests.same('an answer of its own', one ->> 'repeated', 'false');
  perform tests.same('told twice', (select count(*) from public.request_events where request_id = 'r-ax' and type = 'info_answered'), 2::bigint);
end $$;

select tests.count() as checks;
rollback;
