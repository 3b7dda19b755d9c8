-- What donors learn about the use of their money: only groups of at least ten people.
begin;
select tests.start();
select tests.cast_of_people();

-- Grants of 10 dollars each to p_people different people for one kind of help.
create function pg_temp.grants(p_kind text, p_people int, p_from int) returns void language plpgsql as $$
begin
  insert into public.requests (id, request_number, category_id, description, amount, amount_requested, amount_approved, status, nonprofits, first_name, last_name, email, phone,
    address, city, state, postal_code, contact_consent, claimed_by, submitted_at, decided_at)
  select 'w-' || i, 'REQ-' || 700000 + i, 't-cat', 'We need food for two weeks.', '$10', 10, 10, 'approved', array['x'], 'First', 'Last', 'w' || i || '@tests.example', '12345',
    '1 Long Street', 'Portland', 'ME', '04101', true, 'x', now(), now()
  from generate_series(p_from, p_from + p_people - 1) i;
  insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, date)
  select 'x', 'Approval', 10, p_kind, 'w-' || i, now() from generate_series(p_from, p_from + p_people - 1) i;
end $$;
create function pg_temp.told() returns text language sql as $$
  select coalesce(string_agg(p ->> 'category' || ' ' || (p ->> 'amount'), ', ' order by (p ->> 'amount')::numeric desc, p ->> 'category'), '') from jsonb_array_elements(tests.act('donor', 'select public.donor_dashboard()') -> 'paid_for') p
$$;

do $$
begin
  delete from public.budget_transactions where type = 'Approval';
  perform tests.same('nobody helped', pg_temp.told(), '');
  perform pg_temp.grants('Rent', 9, 1);
  perform tests.same('nine people', pg_temp.told(), '');
  perform pg_temp.grants('Rent', 1, 10);
  perform tests.same('ten people', pg_temp.told(), 'Rent 600.00');
  perform pg_temp.grants('Food', 20, 100);
  perform tests.same('two groups', pg_temp.told(), 'Food 400.00, Rent 200.00');
  perform pg_temp.grants('School', 3, 200);
  perform tests.same('three people are told with the smallest group', pg_temp.told(), 'Food 363.64, Other 236.36');
  perform pg_temp.grants('Medical', 7, 300);
  perform tests.same('ten of two kinds are a group of their own', pg_temp.told(), 'Food 300.00, Other 150.00, Rent 150.00');
  -- Removing personal data changes neither how many people were helped nor what is told of the groups.
  perform tests.same('people', tests.act('donor', 'select public.donor_dashboard()') ->> 'people_impacted', '41');
  perform private.erase_people(array(select r.id from public.requests r where r.id like 'w-%'));
  perform tests.same('still as many people', tests.act('donor', 'select public.donor_dashboard()') ->> 'people_impacted', '41');
  perform tests.same('the same groups', pg_temp.told(), 'Food 300.00, Other 150.00, Rent 150.00');
  insert into public.request_nonprofits (request_id, nonprofit_id, state) values ('w-1', 'x', 'claimed');
  perform tests.same('an erased person has no history', tests.act('manager', 'select public.staff_request(''w-1'', ''x'')') ->> 'history_count', '0');
  perform tests.act('anon', 'select public.send_request_code(''REQ-700001'')');
  perform tests.same('nor an address for a code', tests.mails('erased@closed.invalid', '%'), 0);
end $$;

select tests.count() as checks;
rollback;
