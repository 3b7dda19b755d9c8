-- Allocations, donations, the transactions of every grant, and payouts up to the demo's 78000.

do $$
declare daniel constant uuid := 'de300000-0000-4000-8000-000000000006'; priya constant uuid := 'de300000-0000-4000-8000-000000000007';
begin
  if exists (select 1 from public.budget_allocations where id = 'demo-alloc-1') then return; end if;

  insert into public.budget_allocations (id, nonprofit_id, category, amount) values
    ('demo-alloc-1', 'np-001', 'Food Assistance', 60000), ('demo-alloc-2', 'np-001', 'Rent Support', 40000), ('demo-alloc-3', 'np-001', 'Medical Aid', 25000),
    ('demo-alloc-4', 'np-001', 'School Tuition', 15000), ('demo-alloc-5', 'np-001', 'Small Business Help', 10000),
    ('demo-alloc-6', 'np-002', 'Food Assistance', 20000), ('demo-alloc-7', 'np-003', 'School Tuition', 12000), ('demo-alloc-8', 'np-004', 'Medical Aid', 8000);

  insert into public.donations (id, nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, pledged_at, received_at)
  select 'demo-donation-' || row_number() over (), np, who, name, mail, amount, 'received', now() - (days + 1) * interval '1 day', now() - days * interval '1 day'
  from (values
    ('np-001', daniel, 'Daniel Whitcombe', 'donor@demo.aidbridge.test', 500, 17), ('np-002', daniel, 'Daniel Whitcombe', 'donor@demo.aidbridge.test', 450, 70),
    ('np-003', daniel, 'Daniel Whitcombe', 'donor@demo.aidbridge.test', 300, 144), ('np-001', priya, 'Priya Raman', 'donor2@demo.aidbridge.test', 250, 90),
    ('np-001', null::uuid, 'The Ferrymen''s Benevolent Association of Casco Bay', 'office@ferrymen.example', 12000, 51),
    ('np-001', null, 'Spruce Island Foundation', 'grants@spruceisland.example', 25000, 340), ('np-001', null, 'Spruce Island Foundation', 'grants@spruceisland.example', 25000, 250),
    ('np-001', null, 'Spruce Island Foundation', 'grants@spruceisland.example', 25000, 160), ('np-001', null, 'Northern Light Trust', null, 25000, 300),
    ('np-001', null, 'City of Portland', null, 15000, 280), ('np-001', null, 'City of Portland', null, 15000, 100), ('np-001', null, 'Eastern Promenade Rotary', null, 10000, 220),
    ('np-001', null, 'Wharf Street Merchants', null, 10000, 130), ('np-001', null, 'Harvest dinner', null, 9750, 75),
    ('np-002', null, 'Lake Region Growers', null, 20000, 200), ('np-003', null, 'Alumni of Saint Rose', null, 15000, 210), ('np-004', null, 'Hillside Neighbors', null, 5000, 120)
  ) t (np, who, name, mail, amount, days);
  insert into public.donations (id, nonprofit_id, donor_name, donor_email, amount, status, pledged_at)
  values ('demo-donation-pledged', 'np-001', 'Margaret Oyelaran', 'm.oyelaran@mail.example', 75, 'pledged', now() - interval '1 day');

  insert into public.budget_transactions (id, nonprofit_id, type, amount, donation_id, donor, date)
  select 'demo-tx-' || d.id, d.nonprofit_id, 'Donation', d.amount, d.id, d.donor_name, d.received_at from public.donations d
  where d.id like 'demo-donation-%' and d.status = 'received';

  insert into public.budget_transactions (id, nonprofit_id, type, amount, category, request_id, request_number, date)
  select 'demo-tx-' || r.id, r.claimed_by, 'Approval', r.amount_approved, r.category, r.id, r.request_number, r.decided_at from public.requests r
  where r.id like 'demo-req-%' and r.status = 'approved';

  -- oldest grants first, up to what each category has paid
  insert into public.budget_transactions (id, nonprofit_id, type, amount, category, request_id, request_number, date)
  select 'demo-pay-' || x.id, x.claimed_by, 'Payout', least(x.amount_approved, x.target - x.before), x.category, x.id, x.request_number,
    least(x.decided_at + interval '2 days', now() - interval '1 hour')
  from (select r.*, t.target, sum(r.amount_approved) over (partition by r.claimed_by, r.category order by r.decided_at, r.id) - r.amount_approved as before
    from public.requests r join (values ('np-001', 'Food Assistance', 41000), ('np-001', 'Rent Support', 19500), ('np-001', 'Medical Aid', 9800),
      ('np-001', 'School Tuition', 5200), ('np-001', 'Small Business Help', 2500), ('np-002', 'Food Assistance', 1500), ('np-003', 'School Tuition', 3000)) t (np, category, target)
      on t.np = r.claimed_by and t.category = r.category
    where r.id like 'demo-req-%' and r.status = 'approved') x
  where x.before < x.target;
end $$;
