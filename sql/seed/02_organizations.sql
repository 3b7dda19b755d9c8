-- The global categories, the directory np-001…np-004 and the team of the first.

insert into public.categories (id, name, description) values
  ('cat-001', 'Food Assistance', 'Groceries, hot meals, baby food'),
  ('cat-002', 'Rent Support', 'Rent, deposit, electricity or water'),
  ('cat-003', 'Medical Aid', 'Doctor, medicine, hospital bills'),
  ('cat-004', 'School Tuition', 'Fees, books, uniforms'),
  ('cat-005', 'Small Business Help', 'Tools, stock, a small grant')
on conflict do nothing;

do $$
begin
  if exists (select 1 from public.nonprofits where id = 'np-001') then return; end if;

  insert into public.nonprofits (id, name, legal_status, registration_number, employee_count, mission, admin_user_id, email, phone, website, description,
    location, category, average_response_time_days, created_at) values
    ('np-001', 'Harbor Relief Fund', '501(c)(3)', '01-0555001', 14, 'We keep families in Casco Bay fed, housed and safe through their hardest weeks.',
      'de300000-0000-4000-8000-000000000002', 'help@harborrelief.example', '+1 207 555 0100', 'https://harborrelief.example',
      'Emergency help with food, rent and medical bills, decided by people who live here.', 'Portland, ME', 'Emergency Relief', 3, now() - interval '3 years'),
    ('np-002', 'Lakeside Food Bank', '501(c)(3)', '01-0555002', 9, 'Nobody around the lake goes to bed hungry.',
      'de300000-0000-4000-8000-000000000009', 'hello@lakesidefood.example', '+1 207 555 0120', 'https://lakesidefood.example',
      'Boxes of groceries each week, and baby food at any hour.', 'Bridgton, ME', 'Food & Nutrition', 2, now() - interval '2 years'),
    ('np-003', 'Open Door Learning Fund', '501(c)(3)', '01-0555003', 5, 'We pay the fees that stand between a child and the exam.',
      'de300000-0000-4000-8000-000000000010', 'office@opendoorlearning.example', '+1 207 555 0130', 'https://opendoorlearning.example',
      'School fees, books and uniforms for pupils whose families lost their income.', 'Portland, ME', 'Education', 3, now() - interval '2 years'),
    ('np-004', 'Hillside Community Clinic', '501(c)(3)', '01-0555004', 22, 'Care first, the bill later, and never alone.',
      'de300000-0000-4000-8000-000000000011', 'desk@hillsideclinic.example', '+1 207 555 0140', 'https://hillsideclinic.example',
      'Doctor visits, medicine and help with hospital bills.', 'Lewiston, ME', 'Healthcare', 5, now() - interval '18 months');

  update public.nonprofits n set helps_with = t.kinds, service_area = t.places from (values
    ('np-001', array['cat-001', 'cat-002', 'cat-003', 'cat-004', 'cat-005'], array['Portland, ME', 'South Portland, ME', 'Falmouth, ME']),
    ('np-002', array['cat-001'], array['Bridgton, ME', 'Naples, ME', 'Harrison, ME']),
    ('np-003', array['cat-004'], array['Maine', 'ME']),
    ('np-004', array['cat-003'], array['Lewiston, ME', 'Auburn, ME'])) t (id, kinds, places)
  where n.id = t.id;
  update public.nonprofit_team_members set created_at = now() - interval '3 years', joined_at = now() - interval '3 years' where nonprofit_id = 'np-001';
  insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name, role, user_id, is_active, invited_at, joined_at, created_at) values
    ('demo-member-manager', 'np-001', 'manager@demo.aidbridge.test', 'Ruth Okonkwo', 'manager', 'de300000-0000-4000-8000-000000000003', true,
      now() - interval '680 days', now() - interval '678 days', now() - interval '680 days'),
    ('demo-member-employee', 'np-001', 'employee@demo.aidbridge.test', 'Samuel Brightwater', 'employee', 'de300000-0000-4000-8000-000000000004', true,
      now() - interval '200 days', now() - interval '199 days', now() - interval '200 days'),
    ('demo-member-volunteer', 'np-001', 'volunteer@demo.aidbridge.test', 'Nguyễn Thị Minh Khai', 'volunteer', 'de300000-0000-4000-8000-000000000005', false,
      now() - interval '540 days', now() - interval '540 days', now() - interval '540 days'),
    ('demo-member-invited', 'np-001', 'tomasz.wisniewski@mail.example', 'Tomasz Wiśniewski-Kowalczyk', 'employee', 'pending', true,
      now() - interval '3 days', null, now() - interval '3 days');
  update public.user_roles r set nonprofit_role = m.role from public.nonprofit_team_members m where m.user_id = r.user_id::text;
  update public.nonprofit_settings set second_approval_above = 1000 where nonprofit_id = 'np-001';

  insert into public.categories (id, name, description, nonprofit_id) values
    ('demo-np1-food', 'Food Assistance', 'Groceries and hot meals within a day', 'np-001'),
    ('demo-np1-medical', 'Medical Support', 'Medicine and doctor''s bills', 'np-001'),
    ('demo-np1-education', 'Educational Supplies', 'Books, bags and uniforms', 'np-001'),
    ('demo-np1-housing', 'Housing Aid', 'Rent and deposits', 'np-001'),
    ('demo-np1-business', 'Small Business Grants', 'A first tool or the first stock', 'np-001');
  update public.profiles set selected_nonprofit_id = 'np-001' where id in ('de300000-0000-4000-8000-000000000001', 'de300000-0000-4000-8000-000000000008');
end $$;
