-- What `just bench app` measures on: 1,000,000 requests at 1,000 organizations, 200,000 of them at one ('big'), each sent to one or two.
-- psql variables: requests, big. Runs on the migrated, empty database as its owner.
\set ON_ERROR_STOP on
set synchronous_commit = off;
select setseed(0.5);

insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
select '00000000-0000-0000-0000-000000000000', ('7e570000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, 'authenticated', 'authenticated',
  'person' || i || '@bench.example', 'x', now(), '{}', jsonb_build_object('full_name', 'Person ' || i, 'role', case when i <= 2 then 'nonprofit' else 'requester' end), now(), now()
from generate_series(1, 1000) i;
insert into public.categories (id, name) values ('b-1', 'Food Assistance'), ('b-2', 'Rent Support'), ('b-3', 'Medical Aid'), ('b-4', 'School Tuition'), ('b-5', 'Small Business Help');
insert into public.nonprofits (id, name, legal_status, registration_number, employee_count, mission, admin_user_id)
select case i when 0 then 'big' else 'o-' || i end, 'Organization ' || i, 'charity', i::text, 3, 'Help', case i when 0 then '7e570000-0000-4000-8000-000000000001'::uuid end
from generate_series(0, 999) i;

create temp table first_names as select array['Amina','Luis','Marie','Jean','Grace','Omar','Rosa','Pierre','Fatima','Carlos','Nadia','Samuel','Esther','Miguel','Yvonne','Ibrahim','Lucie','Daniel','Soledad','Widline'] as n;
create temp table last_names as select array['Desir','Okafor','Garcia','Joseph','Baptiste','Hassan','Lopez','Pierre','Mensah','Alvarez','Charles','Diallo','Ramirez','Toussaint','Nguyen','Kamau','Estrada','Louis','Sow','Moreau'] as n;

insert into public.requests (id, request_number, user_id, category_id, category, description, amount, amount_requested, amount_approved, status, nonprofits,
  first_name, last_name, email, phone, address, city, state, postal_code, contact_consent, claimed_by, submitted_at, review_started_at, decided_at, denial_reason, denial_reason_code, needs_more_proof, pending_notes)
select 'b-' || i, 'REQ-' || 100000 + i, case when i % 10 = 0 then ('7e570000-0000-4000-8000-' || lpad((3 + i / 10 % 998)::text, 12, '0'))::uuid end,
  'b-' || 1 + i % 5, (array['Food Assistance','Rent Support','Medical Aid','School Tuition','Small Business Help'])[1 + i % 5],
  'We need help for two months, number ' || i, '$' || 50 + i % 950, 50 + i % 950, case when s = 'approved' then 50 + i % 950 end, s,
  case when other is null then array[org] else array[org, other] end,
  (f.n)[1 + i % 20] || case when i % 37 = 0 then '-Noor' else '' end, (l.n)[1 + i / 20 % 20] || case when i % 4001 = 0 then ' Vandersloot' else '' end,
  'p' || i || '@bench.example', '+1 207 555 0100', '1 Long Street', 'Portland', 'ME', '04101', true, case when s in ('approved', 'processing') or proof then org end,
  timestamptz '2026-11-01' - i * interval '30 seconds', timestamptz '2026-11-02' - i * interval '30 seconds', case when s in ('approved', 'declined', 'withdrawn') then timestamptz '2026-11-04' - i * interval '30 seconds' end,
  case when s = 'declined' then 'no' end, case when s = 'declined' then 'other' end, proof, case when proof then 'Please send the letter.' end
from (select i, case when i % 5 = 0 then 'big' else 'o-' || 1 + i % 999 end as org, case when i % 2 = 0 then 'o-' || 1 + (i + 500) % 999 end as other,
    case when i % 20 < 2 then 'pending' when i % 400 = 5 then 'processing' when i % 20 < 12 then 'approved' when i % 20 < 18 then 'declined' else 'withdrawn' end as s,
    i % 20 < 2 and i % 60 = 0 as proof
  from generate_series(1, :requests) i) x, first_names f, last_names l;
insert into public.request_nonprofits (request_id, nonprofit_id, state, submitted_at, opened_at)
select r.id, n, case when r.status = 'declined' then 'denied' when r.status = 'withdrawn' then 'withdrawn' when r.claimed_by is null then 'open' when n = r.claimed_by then 'claimed' else 'taken' end,
  r.submitted_at, r.submitted_at + interval '1 day'
from public.requests r, unnest(r.nonprofits) n;
insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, date)
select claimed_by, 'Approval', amount_approved, category, id, request_number, decided_at from public.requests where status = 'approved';
insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, date)
select claimed_by, 'Payout', round(amount_approved / 2, 2), category, id, request_number, decided_at from public.requests where status = 'approved' and substr(id, 3)::int % 3 = 0;
insert into public.donations (nonprofit_id, donor_name, donor_email, amount, status, received_at)
select 'big', 'Giver ' || i, 'giver' || i || '@bench.example', 5, 'received', now() - i * interval '1 minute' from generate_series(1, 5000) i;
insert into public.notifications (user_id, title, message, date, read)
select ('7e570000-0000-4000-8000-' || lpad((1 + i % 1000)::text, 12, '0'))::uuid, 't', 'm', now() - i * interval '1 minute', i % 7 > 0 from generate_series(1, 300000) i;
select private.add_up_tally();
vacuum analyze;
