-- Incoming Requests in pages: the stored columns and counts match the requests after every kind of change.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- Compares the stored columns and counts with their sources.
create function pg_temp.kept_is_true(what text) returns void language plpgsql as $$
begin
  perform tests.same(what || ': lines that differ from their request', (select coalesce(string_agg(p.request_id || '/' || p.nonprofit_id, ', '), '')
    from public.request_nonprofits p join public.requests r on r.id = p.request_id
    where (p.status, p.needs_more_proof, p.category, p.amount) is distinct from
      (case when p.state <> 'withdrawn' or p.opened_at is not null then private.status_for_part(p.state, r.status) end, r.needs_more_proof and p.state = 'claimed', r.category,
       case when r.claimed_by = p.nonprofit_id then coalesce(r.amount_approved, r.amount_requested) else r.amount_requested end)
      or p.search_text not like '% ' || lower(r.request_number) || ' %'), '');
  perform tests.same(what || ': counts', (select jsonb_object_agg(n.id, private.incoming_counts(n.id)) from public.nonprofits n where n.id in ('x', 'y')),
    (select jsonb_object_agg(n.id, jsonb_build_object('all', c.n, 'pending', c.pending, 'processing', c.processing, 'approved', c.approved, 'declined', c.declined,
        'withdrawn', c.withdrawn, 'taken', c.taken, 'due', c.due))
      from public.nonprofits n cross join lateral (select count(*) as n, count(*) filter (where i.status = 'pending') as pending, count(*) filter (where i.status = 'processing') as processing,
        count(*) filter (where i.status = 'approved') as approved, count(*) filter (where i.status = 'declined') as declined, count(*) filter (where i.status = 'withdrawn') as withdrawn,
        count(*) filter (where i.status = 'taken') as taken, count(*) filter (where i.status in ('pending', 'processing') and not i.needs_more_proof) as due
        from private.incoming_requests i where i.nonprofit_id = n.id) c where n.id in ('x', 'y')));
end $$;
create function pg_temp.page(options text default '') returns jsonb language sql as $$
  select tests.act('manager', 'select public.incoming_page(''x''' || options || ')')
$$;
create function pg_temp.numbers(options text default '') returns text language sql as $$
  select coalesce(string_agg(split_part(r ->> 'request_number', '-', 2), ' '), '') from jsonb_array_elements(pg_temp.page(options) -> 'rows') r
$$;

do $$
declare a jsonb; much numeric; ids text[] := '{}';
begin
  perform pg_temp.kept_is_true('as it began');
  update public.requests set submitted_at = now() - interval '9 days' where requests.id in ('r-ax', 'r-done');
  update public.request_nonprofits set submitted_at = now() - interval '9 days' where request_id in ('r-ax', 'r-done');
  foreach much in array array[100, 700, 300] loop
    a := tests.act('alice', 'select public.submit_request(' || tests.answers(jsonb_build_object('nonprofits', jsonb_build_array('x', 'y'), 'amount', much, 'first_name', 'Zoé', 'last_name', 'O''Hara ' || much)) || ')');
    ids := ids || (a ->> 'id');
    update public.request_nonprofits set submitted_at = now() - much * interval '1 minute' where request_id = a ->> 'id';
    update public.requests set request_number = 'REQ-' || 910000 + much where requests.id = a ->> 'id';
  end loop;
  perform pg_temp.kept_is_true('submitted');
  -- The longest wait comes first, decided requests last.
  perform tests.same('waiting first', pg_temp.numbers(), '900001 910700 910300 910100 900003');
  perform tests.same('newest first', pg_temp.numbers(', sort => ''date'', descending => true, status => ''pending'''), '910100 910300 910700 900001');
  perform tests.same('by amount', pg_temp.numbers(', sort => ''amount'''), '910100 900001 900003 910300 910700');
  perform tests.same('by amount, the largest first', pg_temp.numbers(', sort => ''amount'', descending => true'), '910700 910300 900003 900001 910100');
  perform tests.same('one status', pg_temp.numbers(', status => ''approved'''), '900003');
  perform tests.same('a page', pg_temp.numbers(', page => 2, page_size => 2'), '910300 910100');
  perform tests.same('behind the last page', pg_temp.page(', page => 9') - 'counts', '{"rows": [], "total": 5, "more": false}'::jsonb);
  perform tests.check('manager', 'select public.incoming_page(''x'', status => ''draft'')', 'hint:validation_failed');
  -- Search: every word, anywhere; one or two letters only at the beginning of words; wildcards have no special meaning.
  perform tests.same('a word', pg_temp.numbers(', search => ''zoé'''), '910700 910300 910100');
  perform tests.same('inside of a word', pg_temp.numbers(', search => ''HARA 700'''), '910700');
  perform tests.same('two letters at the beginning', pg_temp.numbers(', search => ''zo'''), '910700 910300 910100');
  perform tests.same('not two letters inside', pg_temp.numbers(', search => ''oé'''), '');
  perform tests.same('a number', pg_temp.numbers(', search => ''req-910100'''), '910100');
  perform tests.same('in one status', pg_temp.page(', search => ''food'', status => ''approved''') ->> 'total', '1');
  perform tests.same('no wildcard', pg_temp.numbers(', search => ''%'''), '');
  perform tests.same('nothing found', pg_temp.page(', search => ''nobody''') - 'counts', '{"rows": [], "total": 0, "more": false}'::jsonb);
  perform tests.same('the counts stay those of all', pg_temp.page(', search => ''nobody''') #> '{counts,all}', '5'::jsonb);

  -- Every transition.
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letter.'')', ids[1]));
  perform pg_temp.kept_is_true('asked for more');
  perform tests.same('it waits for the person', pg_temp.page() #>> '{counts,due}', '3');
  perform tests.same('the others see that it is taken, without the name', tests.act('manager_y', 'select public.incoming_page(''y'', search => ''hara 100'')') ->> 'total', '0');
  perform tests.same('but by its number', tests.act('manager_y', 'select public.incoming_page(''y'', search => ''910100'')') #>> '{rows,0,status}', 'taken');
  perform tests.act('alice', format('select public.answer_request_info(%L, ''Here it is'')', ids[1]));
  perform pg_temp.kept_is_true('answered');
  perform tests.act('manager', format('select public.approve_request(%L, ''x'', 90, true)', ids[1]));
  perform pg_temp.kept_is_true('approved');
  perform tests.same('the amount is the granted one', pg_temp.numbers(', search => ''$90'''), '910100');
  -- Another organization that it was sent to is told what was asked for, not what this one granted.
  perform tests.same('not found by it elsewhere', tests.act('manager_y', 'select public.incoming_page(''y'', search => ''$90'')') ->> 'total', '0');
  perform tests.same('found by the asked one', tests.act('manager_y', 'select public.incoming_page(''y'', search => ''910100'')') #>> '{rows,0,amount}', '$100');
  perform tests.same('nor in the view', tests.act('manager_y', format('select to_jsonb(i) from public.incoming_requests i where request_id = %L', ids[1])) ->> 'amount', '$100');
  perform tests.same('nor on its page', tests.act('manager_y', format('select public.staff_request(%L, ''y'')', ids[1])) #>> '{request,amount}', '$100');
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''We cannot help'')', ids[2]));
  perform pg_temp.kept_is_true('denied by one');
  perform tests.act('manager_y', format('select public.deny_request(%L, ''y'', ''We cannot help'')', ids[2]));
  perform pg_temp.kept_is_true('declined');
  perform tests.act('alice', format('select public.withdraw_request(%L)', ids[3]));
  perform pg_temp.kept_is_true('withdrawn unread');
  perform tests.same('what was withdrawn unread is in no list', pg_temp.numbers(', search => ''910300'''), '');
  perform private.add_up_tally();
  perform pg_temp.kept_is_true('added up');
  perform tests.same('one row for each kind', (select count(*) - count(distinct (nonprofit_id, status, category, due)) from private.incoming_tally), 0::bigint);
  perform tests.act('admin_y', 'select public.close_organization(''y'')');
  perform pg_temp.kept_is_true('closed');
  perform tests.same('sums', (select jsonb_object_agg(n.id, to_jsonb(b)) from public.nonprofits n cross join lateral private.budget_totals(n.id) b where n.id in ('x', 'y')),
    (select jsonb_object_agg(n.id, jsonb_build_object('allocated', (select coalesce(sum(a.amount), 0) from public.budget_allocations a where a.nonprofit_id = n.id),
        'donated', t.donated, 'approved', t.approved, 'paid', t.paid)) from public.nonprofits n cross join lateral (
      select coalesce(sum(b.amount) filter (where b.type = 'Donation'), 0) as donated, coalesce(sum(b.amount) filter (where b.type = 'Approval'), 0) as approved,
        coalesce(sum(b.amount) filter (where b.type = 'Payout'), 0) as paid from public.budget_transactions b where b.nonprofit_id = n.id) t where n.id in ('x', 'y')));
  delete from public.requests where requests.id = ids[1];
  perform pg_temp.kept_is_true('deleted');

  -- Payouts are recorded on the grant.
  perform tests.act('manager', 'select public.record_payout(''r-done'', 100)');
  perform tests.same('paid', (select to_jsonb(g) - 'approved_at' - 'category' from tests.act('manager', 'select to_jsonb(x) from public.approved_grants x where request_id = ''r-done''') g),
    '{"request_id": "r-done", "nonprofit_id": "x", "request_number": "REQ-900003", "requester_name": "Alice Tester", "granted": 250.00, "paid": 100.00, "outstanding": 150.00}'::jsonb);
  perform tests.same('in the page of grants, what is left to pay first', (select string_agg((r ->> 'request_number') || ' ' || (r ->> 'outstanding'), ', ')
    from jsonb_array_elements(tests.act('manager', 'select public.grants_page(''x'')') -> 'rows') r), 'REQ-900003 150.00');
  perform tests.same('and found', tests.act('manager', 'select public.grants_page(''x'', ''alice'')') ->> 'total', '1');
  perform tests.same('or not', tests.act('manager', 'select public.grants_page(''x'', ''nobody'')'), '{"rows": [], "total": 0}'::jsonb);
  delete from public.budget_transactions where request_id = 'r-done' and type = 'Payout';
  perform tests.same('and taken back', (select amount_paid from public.requests where requests.id = 'r-done'), 0.00);

  -- Sorted as shown: 500 was asked for, 50 granted.
  update public.requests set amount_requested = 500 where requests.id = 'r-ax';
  perform tests.act('manager', 'select public.approve_request(''r-ax'', ''x'', 50, true)');
  perform pg_temp.kept_is_true('granted less');
  perform tests.same('by the granted amount', pg_temp.numbers(', status => ''approved'', sort => ''amount'''), '900001 900003');
end $$;

select tests.count() as checks;
rollback;
