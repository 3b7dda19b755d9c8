-- Donor messages with an answer, and what waits in the demo people's notifications.

do $$
declare
  marie constant uuid := 'de300000-0000-4000-8000-000000000001'; ruth constant uuid := 'de300000-0000-4000-8000-000000000003';
  amelie constant uuid := 'de300000-0000-4000-8000-000000000002';
  daniel constant uuid := 'de300000-0000-4000-8000-000000000006'; priya constant uuid := 'de300000-0000-4000-8000-000000000007';
begin
  if exists (select 1 from public.donor_messages where id = 'demo-message-1') then return; end if;

  insert into public.donor_messages (id, nonprofit_id, subject, message, sent_by, recipient_count, created_at) values
    ('demo-message-1', 'np-001', 'What your autumn gifts did', 'Since September your gifts paid for groceries, rent and school fees in 60 homes around the bay. Thank you for staying with us.', amelie, 4, now() - interval '12 days'),
    ('demo-message-2', 'np-001', 'Winter pantry opens on Monday', 'The pantry on Wharf Street opens again on Monday at nine. If you can lend two hours on a Saturday, answer this message and we will find you a place.', ruth, 4, now() - interval '2 days');
  insert into public.donor_message_recipients (message_id, donor_user_id, donor_email, read_at, created_at)
  select m.id, d.who, d.mail, case when m.id = 'demo-message-1' and d.who is not null then m.created_at + interval '5 hours' end, m.created_at
  from public.donor_messages m, (values (daniel, 'donor@demo.aidbridge.test'), (priya, 'donor2@demo.aidbridge.test'), (null::uuid, 'office@ferrymen.example'), (null, 'grants@spruceisland.example')) d (who, mail)
  where m.id like 'demo-message-%';
  insert into public.donor_message_replies (id, message_id, nonprofit_id, donor_user_id, from_name, subject, message, read_at, created_at) values
    ('demo-reply-1', 'demo-message-1', 'np-001', priya, 'Priya Raman', 'Re: What your autumn gifts did', 'Good to read. Could the next letter say how many of the homes have children?', now() - interval '10 days', now() - interval '11 days'),
    ('demo-reply-2', 'demo-message-1', 'np-001', daniel, 'Daniel Whitcombe', 'Re: What your autumn gifts did', 'Thank you for writing. I can help with the van in December if you need a driver.', null, now() - interval '9 days'),
    ('demo-reply-3', 'demo-message-2', 'np-001', priya, 'Priya Raman', 'Re: Winter pantry opens on Monday', 'I can come on the first two Saturdays, from ten to twelve.', null, now() - interval '1 day');

  insert into public.notifications (user_id, type, title, message, code, params, link, request_id, read, date)
  select t.who, t.type, private.say('en', 'notification.' || t.code || '.title', t.params), private.say('en', 'notification.' || t.code || '.body', t.params),
    t.code, t.params, t.link, t.request_id, t.read, now() - t.since
  from (values
    (marie, 'success', 'approved', '{"nonprofit": "Harbor Relief Fund", "number": "REQ-002", "amount": 100}'::jsonb, '/request/demo-req-002', 'demo-req-002', true, interval '38 days'),
    (marie, 'warning', 'declined', '{"nonprofit": "Harbor Relief Fund", "number": "REQ-003", "reason": "Funding limit reached: our rent fund for this quarter is used up."}', '/request/demo-req-003', 'demo-req-003', true, interval '20 days'),
    (marie, 'warning', 'asked', '{"nonprofit": "Open Door Learning Fund", "number": "REQ-004", "question": "Please send the school''s fee letter for this term. A photo is fine."}', '/request/demo-req-004', 'demo-req-004', false, interval '3 days'),
    (marie, 'update', 'finalReview', '{"nonprofit": "Harbor Relief Fund", "number": "REQ-006"}', '/request/demo-req-006', 'demo-req-006', false, interval '1 day'),
    (ruth, 'update', 'newRequest', '{"number": "REQ-001", "category": "Food Assistance", "amount": 250}', '/nonprofit-request/demo-req-001', 'demo-req-001', true, interval '4 days'),
    (ruth, 'update', 'newRequest', '{"number": "REQ-005", "category": "Food Assistance", "amount": 250}', '/nonprofit-request/demo-req-005', 'demo-req-005', false, interval '2 hours'),
    (ruth, 'info', 'taken', '{"number": "REQ-004"}', '/nonprofit-requests', 'demo-req-004', false, interval '3 days'),
    (ruth, 'info', 'donorAnswered', '{"donor": "Priya Raman", "subject": "Winter pantry opens on Monday"}', '/nonprofit-donor-communication?tab=inbox', null, false, interval '1 day'),
    (ruth, 'info', 'pledged', '{"amount": 75, "donor": "Margaret Oyelaran"}', '/nonprofit-budget', null, false, interval '1 day'),
    (amelie, 'warning', 'secondApproval', '{"number": "REQ-006", "amount": 1200}', '/nonprofit-request/demo-req-006', 'demo-req-006', false, interval '1 day'),
    (amelie, 'update', 'newRequest', '{"number": "REQ-005", "category": "Food Assistance", "amount": 250}', '/nonprofit-request/demo-req-005', 'demo-req-005', false, interval '2 hours')
  ) t (who, type, code, params, link, request_id, read, since);
  -- the words of a nonprofit
  insert into public.notifications (user_id, type, title, message, link, donor_message_id, read, date) values
    (daniel, 'update', 'Winter pantry opens on Monday', 'Harbor Relief Fund: The pantry on Wharf Street opens again on Monday at nine. If you can lend two hours on a Saturday, answer this message and we will find you a place.', '/donor-dashboard', 'demo-message-2', false, now() - interval '2 days'),
    (priya, 'update', 'Winter pantry opens on Monday', 'Harbor Relief Fund: The pantry on Wharf Street opens again on Monday at nine.', '/donor-dashboard', 'demo-message-2', true, now() - interval '2 days');
end $$;
