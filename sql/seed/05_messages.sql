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

  insert into public.notifications (user_id, type, title, message, link, request_id, donor_message_id, read, date) values
    (marie, 'success', 'Request Approved', 'Harbor Relief Fund approved REQ-002 for $100.', '/request/demo-req-002', 'demo-req-002', null, true, now() - interval '38 days'),
    (marie, 'warning', 'Request Declined', 'Harbor Relief Fund declined REQ-003: Funding limit reached: our rent fund for this quarter is used up.', '/request/demo-req-003', 'demo-req-003', null, true, now() - interval '20 days'),
    (marie, 'warning', 'Additional Information Requested', 'Open Door Learning Fund asks about REQ-004: Please send the school''s fee letter for this term. A photo is fine.', '/request/demo-req-004', 'demo-req-004', null, false, now() - interval '3 days'),
    (marie, 'update', 'Request under final review', 'Harbor Relief Fund finished its review of REQ-006. The decision is next.', '/request/demo-req-006', 'demo-req-006', null, false, now() - interval '1 day'),
    (ruth, 'update', 'New request REQ-001', 'Food Assistance, $250.', '/nonprofit-request/demo-req-001', 'demo-req-001', null, true, now() - interval '4 days'),
    (ruth, 'update', 'New request REQ-005', 'Food Assistance, $250.', '/nonprofit-request/demo-req-005', 'demo-req-005', null, false, now() - interval '2 hours'),
    (ruth, 'info', 'REQ-004 is taken', 'Another nonprofit took this request. There is nothing to do.', '/nonprofit-requests', 'demo-req-004', null, false, now() - interval '3 days'),
    (ruth, 'info', 'A donor answered', 'Priya Raman: Re: Winter pantry opens on Monday', '/nonprofit-donor-communication?tab=inbox', null, null, false, now() - interval '1 day'),
    (ruth, 'info', 'New pledge: $75', 'Margaret Oyelaran wants to give. Mark it received when the money is here.', '/nonprofit-budget', null, null, false, now() - interval '1 day'),
    (amelie, 'warning', 'REQ-006 needs a second approval', 'For $1200, by another manager or admin.', '/nonprofit-request/demo-req-006', 'demo-req-006', null, false, now() - interval '1 day'),
    (amelie, 'update', 'New request REQ-005', 'Food Assistance, $250.', '/nonprofit-request/demo-req-005', 'demo-req-005', null, false, now() - interval '2 hours'),
    (daniel, 'update', 'Winter pantry opens on Monday', 'Harbor Relief Fund: The pantry on Wharf Street opens again on Monday at nine. If you can lend two hours on a Saturday, answer this message and we will find you a place.', '/donor-dashboard', null, 'demo-message-2', false, now() - interval '2 days'),
    (priya, 'update', 'Winter pantry opens on Monday', 'Harbor Relief Fund: The pantry on Wharf Street opens again on Monday at nine.', '/donor-dashboard', null, 'demo-message-2', true, now() - interval '2 days');
end $$;
