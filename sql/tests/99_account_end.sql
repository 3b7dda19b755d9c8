-- Exporting data and closing an account: the export contains all personal data, and afterwards only the books remain.
begin;
select tests.start();
select tests.cast_of_people();

create function pg_temp.traces(p_email text, p_name text) returns text language sql as $$
  select coalesce(string_agg(what || ' ' || n, ', '), '') from (
    select 'requests' as what, count(*) as n from public.requests r where to_jsonb(r)::text ilike any (array['%' || p_email || '%', '%' || p_name || '%'])
    union all select 'parts', count(*) from public.request_nonprofits p where to_jsonb(p)::text ilike any (array['%' || p_email || '%', '%' || p_name || '%'])
    union all select 'profiles', count(*) from public.profiles p where to_jsonb(p)::text ilike any (array['%' || p_email || '%', '%' || p_name || '%'])
    union all select 'users', count(*) from auth.users u where u.email ilike p_email
    union all select 'members', count(*) from public.nonprofit_team_members m where m.email ilike p_email
    union all select 'identities', count(*) from public.profile_identities i where i.id_number = 'PA-0815') x where n > 0
$$;

do $$
declare r jsonb; me uuid := tests.id('alice'); sent int; approved text;
begin
  -- Alice has requests in several states; adds one more document, an identity and a photo.
  insert into public.profile_identities (user_id, id_type, id_number) values (me, 'Passport', 'PA-0815')
    on conflict (user_id) do update set id_type = 'Passport', id_number = 'PA-0815';
  select r.id into approved from public.requests r where r.user_id = me and r.status = 'approved' limit 1;
  perform tests.same('the cast has an approved request of hers', approved is not null, true);
  select count(*) into sent from public.requests x where x.user_id = me;

  -- the export
  perform tests.check('anon', 'select public.my_data()', 'refused');
  r := tests.act('alice', 'select public.my_data()');
  perform tests.same('her address', r #>> '{account,email}', 'alice@tests.example');
  perform tests.same('all her requests', jsonb_array_length(r -> 'requests'), sent);
  perform tests.same('her document', r #>> '{identity_document,id_number}', 'PA-0815');
  perform tests.same('of others nothing', r::text like '%bob@tests.example%', false);
  perform tests.same('no keys of ours', (r -> 'requests')::text like '%submit_key%', false);

  -- Not by accident, and not by anybody else.
  perform tests.check('anon', 'select public.close_account(''alice@tests.example'')', 'refused');
  perform tests.check('alice', 'select public.close_account(''bob@tests.example'')', 'hint:validation_failed');
  perform tests.check('alice', 'select public.close_account('''')', 'hint:validation_failed');
  perform tests.check('alice', 'select private.erase_people(array[''r-ax''])', 'refused');
  -- The only admin of an open organization has to resolve that first.
  update public.nonprofit_team_members set role = 'employee' where nonprofit_id = 'x' and role = 'admin' and user_id <> tests.id('admin')::text;
  perform tests.check('admin', 'select public.close_account(''admin@tests.example'')', 'hint:last_admin');
  perform tests.same('she is still there', (select count(*)::int from auth.users u where u.id = tests.id('admin')), 1);

  r := tests.act('alice', 'select public.close_account('' Alice@Tests.example'')');
  perform tests.same('no request is lost from the count', (r ->> 'kept_requests')::int + (r ->> 'erased_requests')::int, sent);
  perform tests.same('nothing names her', pg_temp.traces('alice@tests.example', 'alice'), '');
  perform tests.same('the books keep what was granted', (select count(*)::int from public.requests x where x.id = approved and x.amount_approved is not null and x.user_id is null), 1);
  perform tests.same('no paper is left', (select count(*)::int from public.request_documents d join public.requests x on x.id = d.request_id where x.email = 'erased@closed.invalid'), 0);
  perform tests.same('nor its file', (select count(*)::int from storage.objects o where o.bucket_id = 'request-documents' and o.name like approved || '/%'), 0);
  perform tests.same('she is told at her address', (tests.mail_text('alice@tests.example', '%account is closed%') like '%erased%'), true);
  perform tests.same('lines and counts agree', (select count(*)::int from public.request_nonprofits p join public.requests x on x.id = p.request_id
    where p.status is distinct from case when p.state <> 'withdrawn' or p.opened_at is not null then private.status_for_part(p.state, x.status) end), 0);

  -- If a colleague leaves, the organization stays.
  r := tests.act('manager', 'select public.close_account(''manager@tests.example'')');
  perform tests.same('the organization stays', (select status from public.nonprofits n where n.id = 'x'), 'active');
end $$;

-- Expiry over time.
-- By the address that a request was sent with.
create table pg_temp.guests (label text, id text);
create function pg_temp.left_of(p_label text) returns text language sql as $$
  select coalesce((select case when r.email = 'erased@closed.invalid' then 'the books' else 'whole' end
    from public.requests r where r.id = coalesce((select g.id from pg_temp.guests g where g.label = p_label), p_label)), 'nothing')
$$;

do $$
declare old record; sent text;
begin
  insert into public.requests (id, status, description, updated_at) values ('old-draft', 'draft', 'x', now());
  -- Guests' requests, by outcome and age in months.
  for old in select * from (values ('denied', 13), ('denied', 11), ('withdrawn', 13), ('approved', 25), ('approved', 23), ('pending', 25)) t (what, months)
  loop
    sent := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "gaston@tests.example"}') || ')') ->> 'id';
    insert into pg_temp.guests values (old.what || ' ' || old.months, sent);
    alter table public.requests disable trigger guard;
    update public.requests r set status = case old.what when 'denied' then 'declined' else old.what end,
      decided_at = case when old.what <> 'pending' then now() - make_interval(months => old.months) end,
      denial_reason = case when old.what = 'denied' then 'No money' end, denial_reason_code = case when old.what = 'denied' then 'funding_limit' end,
      amount_approved = case when old.what = 'approved' then 10 end where r.id = sent;
    alter table public.requests enable trigger guard;
  end loop;
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes)
  select g.id, 'p.pdf', g.id || '/p.pdf', 'application/pdf', 1 from pg_temp.guests g where g.label = 'denied 13';
  alter table public.requests disable trigger guard;
  update public.requests set updated_at = now() - interval '13 months' where id = 'old-draft';
  update public.requests set user_id = null, decided_at = now() - interval '3 years', status = 'approved', amount_approved = 10 where id = 'r-by';
  alter table public.requests enable trigger guard;
  insert into public.notifications (id, user_id, type, title, message, read, date) values
    ('00000000-0000-4000-8000-0000000000a1', tests.id('bob'), 'info', 'old and read', 'x', true, now() - interval '2 years'),
    ('00000000-0000-4000-8000-0000000000a2', tests.id('bob'), 'info', 'old and new', 'x', false, now() - interval '2 years');
  perform tests.check('bob', 'select private.retain()', 'refused');
  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.same('a guest who was denied, a year ago', pg_temp.left_of('denied 13'), 'nothing');
  perform tests.same('with their papers', (select count(*)::int from public.request_documents d join pg_temp.guests g on g.id = d.request_id and g.label = 'denied 13'), 0);
  perform tests.same('and one of this year', pg_temp.left_of('denied 11'), 'whole');
  perform tests.same('a guest who withdrew, a year ago', pg_temp.left_of('withdrawn 13'), 'nothing');
  perform tests.same('a guest who got money, two years ago', pg_temp.left_of('approved 25'), 'the books');
  perform tests.same('and one of two months less', pg_temp.left_of('approved 23'), 'whole');
  perform tests.same('one that waits', pg_temp.left_of('pending 25'), 'whole');
  perform tests.same('of an account that was closed', pg_temp.left_of('r-by'), 'the books');
  perform tests.same('a draft that nobody touches', (select count(*)::int from public.requests x where x.id = 'old-draft'), 0);
  perform tests.same('an old message that was read, and no other', (select string_agg(n.title, ', ') from public.notifications n where n.title like 'old and%'), 'old and new');
end $$;

-- A request that is sent again shares its files with the first. They stay as long as one of the two names them.
create function pg_temp.stored(p_name text) returns int language sql as $$
  select count(*)::int from storage.objects o where o.bucket_id = 'request-documents' and o.name = p_name
$$;

do $$
declare first text; again text;
begin
  perform tests.account('agathe', 'requester');
  first := tests.act('agathe', 'select public.submit_request(' || tests.answers('{"email": "agathe@tests.example"}') || ')') ->> 'id';
  insert into storage.objects (bucket_id, name) values ('request-documents', first || '/shared.pdf');
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (first, 'shared.pdf', first || '/shared.pdf', 'application/pdf', 9);
  perform tests.act('agathe', format('select public.withdraw_request(%L)', first));
  again := tests.act('agathe', format('select public.resubmit_request(%L)', first)) ->> 'draft_id';
  insert into storage.objects (bucket_id, name) values ('request-documents', again || '/own.pdf');
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (again, 'own.pdf', again || '/own.pdf', 'application/pdf', 9);
  perform tests.same('the draft names both', (select count(*)::int from public.request_documents d where d.request_id = again), 2);
  alter table public.requests disable trigger guard;
  update public.requests set updated_at = now() - interval '13 months' where id = again;
  alter table public.requests enable trigger guard;
  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.same('the old draft is gone', pg_temp.left_of(again), 'nothing');
  perform tests.same('with its own file', pg_temp.stored(again || '/own.pdf'), 0);
  perform tests.same('the sent request keeps its file', pg_temp.stored(first || '/shared.pdf'), 1);
  again := tests.act('agathe', format('select public.resubmit_request(%L)', first)) ->> 'draft_id';
  perform tests.same('and can be sent again with it', (select count(*)::int from public.request_documents d where d.request_id = again), 1);
  -- Of an account that ends, nothing is left.
  perform tests.act('agathe', 'select public.close_account(''agathe@tests.example'')');
  perform tests.same('with the last request that names it, it goes', pg_temp.stored(first || '/shared.pdf'), 0);
end $$;

-- Requests without an account that nobody answers: told, kept or deleted.
do $$
declare what text; sent jsonb; code text;
begin
  perform tests.same('the request that waits was not told of anything', tests.mails('gaston@tests.example', '%still needed%'), 0);
  -- quiet for ten months and for twelve; one in French, one that its organization asked about, one of an account
  delete from private.rate_limits;
  foreach what in array array['ten', 'twelve', 'kept', 'corrected', 'asked', 'french', 'two', 'account'] loop
    sent := tests.act(case what when 'account' then 'stranger' else 'anon' end, 'select public.submit_request(' || tests.answers(jsonb_build_object('email', what || '@tests.example',
      'nonprofits', case when what = 'two' then '["x", "y"]' else '["x"]' end::jsonb)) || ')');
    insert into pg_temp.guests values (what, sent ->> 'id');
  end loop;
  perform tests.act('manager2', format('select public.request_more_info(%L, ''x'', ''Please send the letter.'')', (select g.id from pg_temp.guests g where g.label = 'asked')));
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes)
    select g.id, 'p.pdf', g.id || '/p.pdf', 'application/pdf', 1 from pg_temp.guests g where g.label = 'twelve';
  insert into storage.objects (bucket_id, name) select 'request-documents', g.id || '/p.pdf' from pg_temp.guests g where g.label = 'twelve';
  alter table public.requests disable trigger guard;
  update public.requests r set updated_at = now() - make_interval(months => case when g.label = 'ten' then 10 else 12 end),
    language = case when g.label = 'french' then 'fr' else 'en' end
  from pg_temp.guests g where g.id = r.id and g.label in ('ten', 'twelve', 'kept', 'corrected', 'asked', 'french', 'two', 'account');
  alter table public.requests enable trigger guard;

  -- nobody starts it, and nobody reads who was told
  foreach what in array array['anon', 'bob', 'manager', 'admin'] loop
    perform tests.check(what, 'select private.retain_unanswered(1)', 'refused');
    perform tests.check(what, 'select private.retain()', 'refused');
    perform tests.check(what, 'select * from private.unanswered_requests', 'refused');
    perform tests.check(what, 'delete from private.unanswered_requests', 'refused');
  end loop;

  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.same('the person is told, once', tests.mails('twelve@tests.example', '%is your request still needed?'), 1);
  perform tests.same('by when', tests.mail_text('twelve@tests.example', '%still needed%') like '%On ' || private.day('en', current_date + 30) || ' we delete it%', true);
  perform tests.same('with the way to keep it', tests.mail_text('twelve@tests.example', '%still needed%') like '%/open-request?number=%', true);
  perform tests.same('in their language', tests.mail_text('french@tests.example', '%avez-vous encore besoin%') like '%Le ' || private.day('fr', current_date + 30) || ', nous%', true);
  perform tests.same('also who was asked something and did not answer', tests.mails('asked@tests.example', '%still needed%'), 1);
  perform tests.same('not before eleven months', tests.mails('ten@tests.example', '%still needed%'), 0);
  perform tests.same('nobody with an account, whose request stays theirs', tests.mails('account@tests.example', '%still needed%'), 0);
  perform tests.same('the staff who could decide are told', (select string_agg(distinct n.message, '; ') from public.notifications n
    where n.code = 'unanswered' and n.request_id = (select g.id from pg_temp.guests g where g.label = 'two')),
    'Nothing has happened to it for eleven months. It is deleted on ' || private.day('en', current_date + 30) || '. Please decide before, or ask.');
  perform tests.same('of both organizations, each once', (select string_agg(m.nonprofit_id || ' ' || m.role, ', ' order by m.nonprofit_id, m.role, m.id) from public.notifications n
    join public.nonprofit_team_members m on m.user_id = n.user_id::text where n.code = 'unanswered' and n.request_id = (select g.id from pg_temp.guests g where g.label = 'two')),
    (select string_agg(m.nonprofit_id || ' ' || m.role, ', ' order by m.nonprofit_id, m.role, m.id) from public.nonprofit_team_members m
      where m.nonprofit_id in ('x', 'y') and m.is_active and m.role in ('admin', 'manager', 'employee') and exists (select 1 from auth.users u where u.id::text = m.user_id)));
  perform tests.same('also those who asked and got no answer', (select count(distinct n.user_id) > 0 from public.notifications n
    where n.code = 'unanswered' and n.request_id = (select g.id from pg_temp.guests g where g.label = 'asked')), true);
  perform tests.same('and nothing is gone yet', pg_temp.left_of('twelve'), 'whole');

  -- a day before the end nothing happens; one opens it with a code, another one corrects it
  update private.unanswered_requests set ends_on = current_date + 1;
  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.same('the day before', pg_temp.left_of('twelve'), 'whole');
  perform tests.act('anon', format('select public.send_request_code(%L)', (select r.request_number from public.requests r join pg_temp.guests g on g.id = r.id and g.label = 'kept')));
  code := substring(tests.mail_text('kept@tests.example', '%opens REQ-%') from '[0-9]{6}');
  perform tests.same('a wrong code keeps nothing', tests.act('anon', format('select public.check_request_code(%L, ''000000'')',
    (select r.request_number from public.requests r join pg_temp.guests g on g.id = r.id and g.label = 'twelve'))) ->> 'ok', 'false');
  perform tests.same('it is opened', tests.act('anon', format('select public.check_request_code(%L, %L)',
    (select r.request_number from public.requests r join pg_temp.guests g on g.id = r.id and g.label = 'kept'), code)) ->> 'ok', 'true');
  alter table public.requests disable trigger guard;
  -- within one transaction the time stands still
  update public.requests r set phone = '54321', updated_at = now() + interval '1 second' from pg_temp.guests g where g.id = r.id and g.label = 'corrected';
  alter table public.requests enable trigger guard;

  update private.unanswered_requests set ends_on = current_date;
  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.same('deleted on the day', pg_temp.left_of('twelve'), 'nothing');
  perform tests.same('with its paper', (select count(*)::int from public.request_documents d join pg_temp.guests g on g.id = d.request_id and g.label = 'twelve'), 0);
  perform tests.same('and the file', (select count(*)::int from storage.objects o join pg_temp.guests g on o.name = g.id || '/p.pdf' and g.label = 'twelve'), 0);
  perform tests.same('and with what staff were told', (select count(*)::int from public.notifications n join pg_temp.guests g on g.id = n.request_id and g.label = 'twelve'), 0);
  perform tests.same('one that was asked about, too', pg_temp.left_of('asked'), 'nothing');
  perform tests.same('the person is told that it is deleted', tests.mails('twelve@tests.example', '%your request is deleted'), 1);
  perform tests.same('and where to ask again', tests.mail_text('twelve@tests.example', '%your request is deleted') like '%/submit-request%', true);
  perform tests.same('what the person opened stays', pg_temp.left_of('kept'), 'whole');
  perform tests.same('what changed stays', pg_temp.left_of('corrected'), 'whole');
  perform tests.same('and was taken from the list', (select count(*)::int from private.unanswered_requests u join pg_temp.guests g on g.id = u.request_id and g.label = 'corrected'), 0);
  perform tests.same('the account''s stays', pg_temp.left_of('account'), 'whole');
  perform tests.same('the counts of staff agree', (select coalesce(sum(t.change), 0)::int from private.incoming_tally t where t.nonprofit_id = 'x'),
    (select count(*)::int from public.request_nonprofits p where p.nonprofit_id = 'x' and p.status is not null));

  -- eleven months after it was opened, it begins anew
  update private.unanswered_requests set kept_at = now() - interval '12 months';
  perform tests.act('service', 'select to_jsonb(private.retain()::text)');
  perform tests.same('told again', tests.mails('kept@tests.example', '%still needed%'), 2);
  perform tests.same('with thirty days again', (select ends_on from private.unanswered_requests u join pg_temp.guests g on g.id = u.request_id and g.label = 'kept'), current_date + 30);

  -- few at a time, so that nobody waits
  alter table public.requests disable trigger guard;
  update public.requests r set updated_at = now() - interval '12 months' from pg_temp.guests g where g.id = r.id and g.label in ('ten', 'corrected');
  alter table public.requests enable trigger guard;
  perform tests.act('service', 'select to_jsonb(private.retain(1)::text)');
  perform tests.same('one at a time', (select count(*)::int from private.unanswered_requests u join pg_temp.guests g on g.id = u.request_id and g.label in ('ten', 'corrected')), 1);
end $$;

select tests.count() as checks;
rollback;
