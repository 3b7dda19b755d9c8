-- REQ-001…REQ-008 with realistic texts, and a year of earlier requests that sum up to the demo budget.

do $$
declare
  marie constant uuid := 'de300000-0000-4000-8000-000000000001';
  joseph constant uuid := 'de300000-0000-4000-8000-000000000008';
  ruth constant uuid := 'de300000-0000-4000-8000-000000000003';
  toussaint constant uuid := 'de300000-0000-4000-8000-000000000010';
  firsts constant text[] := array['Ana','Bilal','Chidi','Dora','Elena','Farid','Grace','Hugo','Ines','Jonas','Kemi','Lucia','Mateo','Nadia','Oskar','Paula','Quentin','Rosa','Stefan','Tereza'];
  lasts constant text[] := array['Abara','Bouchard','Castillo','Duval','Eriksen','Flores','Gagnon','Haddad','Ivanov','Jacobs','Kowal','Lefebvre','Mendoza','Novak','Ortiz','Pelletier','Quintero','Roy','Sato','Thibault'];
  g record; i int := 0; v_id text; v_number text; d timestamptz; s timestamptz;
begin
  if exists (select 1 from public.requests where id = 'demo-req-001') then return; end if;

  insert into public.requests (id, request_number, user_id, category_id, title, description, amount, amount_requested, amount_approved, status, nonprofits, needs_more_proof,
    pending_notes, denial_reason, denial_reason_code, first_name, last_name, email, phone, address, city, state, postal_code, contact_consent, step,
    claimed_by, submitted_at, review_started_at, decided_at, created_at, updated_at)
  select x.id, x.n, x.who, x.cat, x.title, x.story, private.amount_text(coalesce(x.granted_now, x.asked)), x.asked, x.granted, x.st, x.nps, x.proof,
    x.notes, x.denial, x.code, p.first_name, p.last_name, p.email, p.phone,
    case when x.who = marie then '18 Saint-Germain-en-Laye Street, Apt 4' else '7 Anchor Row' end, 'Portland', 'ME', '04101', true, 5,
    x.claimed, now() - x.sent, now() - x.opened, now() - x.decided, now() - x.sent, now() - coalesce(x.decided, x.opened, x.sent)
  from (values
    ('demo-req-001', 'REQ-001', marie, 'cat-001', 'Food until December 7', 'I lost my cleaning job in October. I look after my two grandchildren and the pantry near us closed. We need food until my new job starts on December 7. I can come to you, or you can bring it. Anything helps, and I can show the letter from the new job.',
      250::numeric, null::numeric, null::numeric, 'pending', array['np-001', 'np-002'], false, null::text, null::text, null::text, null::text, interval '4 days', interval '3 days', null::interval),
    ('demo-req-002', 'REQ-002', marie, 'cat-003', 'Prescription after the hospital', 'The hospital sent me home with two prescriptions. The insurance pays for one of them. I cannot pay for the other before the end of the month.',
      150, 100, 100, 'approved', array['np-001'], false, null, null, null, 'np-001', interval '43 days', interval '42 days', interval '38 days'),
    ('demo-req-003', 'REQ-003', marie, 'cat-002', 'Rent for November', 'My hours were cut and I am one month behind with the rent. The landlord gives me until the tenth. I can pay half of it myself.',
      900, null, null, 'declined', array['np-001'], false, null, 'Funding limit reached: our rent fund for this quarter is used up. Please send it again in January.', 'funding_limit', null, interval '24 days', interval '23 days', interval '20 days'),
    ('demo-req-004', 'REQ-004', marie, 'cat-004', 'Second half of the school fees', 'My granddaughter starts her last year at Lycée Sainte-Rose-de-Lima. I paid the first half of the fees. I lost my job in October and cannot pay the second half, and without it she cannot sit the exam in June.',
      320, null, null, 'pending', array['np-003', 'np-001'], true, 'Please send the school''s fee letter for this term. A photo is fine. Once it is here we can decide within two days.', null, null, 'np-003', interval '5 days', interval '3 days', null),
    ('demo-req-005', 'REQ-005', joseph, 'cat-001', 'Groceries for two weeks', 'The boat I work on is in repair until the middle of next month and I am not paid while it is. There are four of us at home.',
      250, null, null, 'pending', array['np-001'], false, null, null, null, null, interval '2 hours', null, null),
    ('demo-req-006', 'REQ-006', marie, 'cat-005', 'A sewing machine', 'I sew alterations for neighbours by hand. With a second-hand machine I could take work from the two shops that asked me. I have a quote from the shop.',
      1200, null, null, 'processing', array['np-001'], false, null, null, null, 'np-001', interval '18 days', interval '16 days', null),
    ('demo-req-007', 'REQ-007', joseph, 'cat-002', 'One month of rent', 'We moved for my wife''s work, and her first wage comes only at the end of next month. The deposit took what we had saved.',
      640, 640, 640, 'approved', array['np-001'], false, null, null, null, 'np-001', interval '22 days', interval '20 days', interval '3 days'),
    ('demo-req-008', 'REQ-008', marie, 'cat-001', 'A food box for the weekend', 'My card did not work and the pantry is closed until Monday. We need food for three people for the weekend.',
      80, null, null, 'withdrawn', array['np-002', 'np-001'], false, null, null, null, null, interval '50 days', interval '49 days', interval '48 days')
  ) x (id, n, who, cat, title, story, asked, granted, granted_now, st, nps, proof, notes, denial, code, claimed, sent, opened, decided)
  join public.profiles p on p.id = x.who;

  insert into private.first_approvals (request_id, amount, approved_by, approved_at) values ('demo-req-006', 1200, ruth, now() - interval '1 day');

  insert into public.request_nonprofits (request_id, nonprofit_id, state, submitted_at, opened_at, opened_by, acted_at, acted_by, reason, reason_code)
  select r.id, y.np, y.state, r.submitted_at, case when y.opened then r.review_started_at end, case when y.opened then y.by end,
    case when y.state not in ('open', 'taken') then coalesce(r.decided_at, (select f.approved_at from private.first_approvals f where f.request_id = r.id), r.review_started_at) end, case when y.state not in ('open', 'taken', 'withdrawn') then y.by end,
    case when y.state = 'denied' then r.denial_reason end, case when y.state = 'denied' then r.denial_reason_code end
  from (values ('demo-req-001', 'np-001', 'open', true, ruth), ('demo-req-001', 'np-002', 'open', false, null), ('demo-req-002', 'np-001', 'claimed', true, ruth),
    ('demo-req-003', 'np-001', 'denied', true, ruth), ('demo-req-004', 'np-003', 'claimed', true, toussaint), ('demo-req-004', 'np-001', 'taken', false, null),
    ('demo-req-005', 'np-001', 'open', false, null), ('demo-req-006', 'np-001', 'claimed', true, ruth), ('demo-req-007', 'np-001', 'claimed', true, ruth),
    ('demo-req-008', 'np-001', 'withdrawn', true, ruth), ('demo-req-008', 'np-002', 'withdrawn', true, 'de300000-0000-4000-8000-000000000009'::uuid)
  ) y (request, np, state, opened, by) join public.requests r on r.id = y.request;

  insert into public.request_events (request_id, type, actor, actor_user_id, created_at)
  select id, 'submitted', 'requester', user_id, submitted_at from public.requests where id like 'demo-req-%' and status <> 'draft';
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, created_at)
  select p.request_id, 'opened', 'nonprofit', p.nonprofit_id, p.opened_by, p.opened_at from public.request_nonprofits p where p.request_id like 'demo-req-%' and p.opened_at is not null;
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, note, amount, for_requester, created_at) values
    ('demo-req-002', 'approved', 'nonprofit', 'np-001', ruth, null, 100, true, now() - interval '38 days'),
    ('demo-req-003', 'denied', 'nonprofit', 'np-001', ruth, 'Funding limit reached: our rent fund for this quarter is used up. Please send it again in January.', null, true, now() - interval '20 days'),
    ('demo-req-003', 'declined', 'system', 'np-001', null, null, null, true, now() - interval '20 days' + interval '1 second'),
    ('demo-req-004', 'info_requested', 'nonprofit', 'np-003', toussaint, 'Please send the school''s fee letter for this term. A photo is fine. Once it is here we can decide within two days.', null, true, now() - interval '3 days' + interval '1 hour'),
    ('demo-req-006', 'first_approval', 'nonprofit', 'np-001', ruth, null, 1200, false, now() - interval '1 day'),
    ('demo-req-007', 'approved', 'nonprofit', 'np-001', ruth, null, 640, true, now() - interval '3 days'),
    ('demo-req-008', 'withdrawn', 'requester', null, marie, null, null, true, now() - interval '48 days');

  insert into public.requests (id, user_id, category_id, title, description, amount, nonprofits, step, first_name, last_name, email, phone, created_at, updated_at)
  values ('demo-draft-001', marie, 'cat-004', 'School books', 'My grandson needs the books for', '45', array['np-003'], 4, 'Marie-Thérèse', 'Désir-Beauvoir',
    'requester@demo.aidbridge.test', '+1 207 555 0142', now() - interval '1 day', now() - interval '1 day');

  -- The year before. Per organization and category: how many, the two amounts that alternate, a last one, and between which
  -- days they were decided. np-001 sums, with REQ-002 and REQ-007, to 46250 + 27500 + 14000 + 8000 + 3000 = 98750.
  i := 8;
  for g in
    with plan (np, cat, n, a, b, tail, from_day, to_day) as (values
      ('np-001', 'cat-001', 91, 650, 350, null::int, 330, 20), ('np-001', 'cat-002', 33, 800, 800, null, 325, 21), ('np-001', 'cat-003', 35, 300, 500, null, 328, 22),
      ('np-001', 'cat-004', 31, 200, 300, null, 320, 23), ('np-001', 'cat-005', 6, 400, 600, null, 300, 40),
      ('np-001', 'cat-001', 6, 100, 100, null, 16, 2), ('np-001', 'cat-004', 3, 100, 100, null, 15, 4), ('np-001', 'cat-002', 2, 230, 230, null, 14, 6),
      ('np-002', 'cat-001', 18, 120, 80, null, 66, 3), ('np-003', 'cat-004', 12, 400, 250, null, 140, 8)),
    rows as (
      select p.np, p.cat, case when k % 2 = 1 then p.a else p.b end as amount, 'approved' as status,
        p.from_day - (p.from_day - p.to_day) * (k - 1) / greatest(p.n - 1, 1)::numeric as day, null::text as code, row_number() over () as r
      from plan p, generate_series(1, p.n) k
      union all
      select 'np-001', c, 500, 'declined', dd, code, 10000 + dd from (values ('cat-002', 60, 'funding_limit'), ('cat-003', 90, 'missing_proof'), ('cat-001', 120, 'outside_area'),
        ('cat-005', 180, 'not_eligible'), ('cat-004', 240, 'duplicate')) t (c, dd, code))
    select * from rows order by day desc, r
  loop
    i := i + 1;
    v_id := 'demo-req-' || lpad(i::text, 3, '0'); v_number := 'REQ-' || lpad(i::text, 3, '0');
    d := now() - g.day * interval '1 day'; s := d - ((i % 5) + 2) * interval '1 day';
    insert into public.requests (id, request_number, category_id, title, description, amount, amount_requested, amount_approved, status, nonprofits, denial_reason, denial_reason_code,
      first_name, last_name, email, phone, address, city, state, postal_code, contact_consent, step, claimed_by, submitted_at, review_started_at, decided_at, created_at, updated_at)
    values (v_id, v_number, g.cat, null, 'We had a hard month and need help to get through the next one. I can send the papers that you need.',
      private.amount_text(g.amount), g.amount, case when g.status = 'approved' then g.amount end, g.status, array[g.np],
      case when g.status = 'declined' then (select label || '.' from public.denial_reasons where code = g.code) end, g.code,
      firsts[1 + i % 20], lasts[1 + (i / 20 + i) % 20], 'person' || i || '@mail.example', '+1 207 555 ' || lpad((1000 + i)::text, 4, '0'),
      (i % 90 + 1) || ' Wharf Street', 'Portland', 'ME', '04101', true, 5, case when g.status = 'approved' then g.np end, s, s + interval '1 day', d, s, d);
    insert into public.request_nonprofits (request_id, nonprofit_id, state, submitted_at, opened_at, opened_by, acted_at, acted_by, reason, reason_code)
    values (v_id, g.np, case when g.status = 'approved' then 'claimed' else 'denied' end, s, s + interval '1 day', null, d, null,
      case when g.status = 'declined' then (select label || '.' from public.denial_reasons where code = g.code) end, g.code);
    insert into public.request_events (request_id, type, actor, nonprofit_id, amount, created_at) values
      (v_id, 'submitted', 'requester', null, null, s), (v_id, 'opened', 'nonprofit', g.np, null, s + interval '1 day'),
      (v_id, case when g.status = 'approved' then 'approved' else 'declined' end, 'nonprofit', g.np, case when g.status = 'approved' then g.amount end, d);
  end loop;
  update public.requests set title = category where id like 'demo-req-%' and title is null;
  perform setval('public.request_number_seq', i);
end $$;
