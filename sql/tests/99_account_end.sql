-- Taking along and ending an account: everything that is a person's is in the copy, and nothing of it is left afterwards but the books.
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
  -- the cast's Alice has requests in several states; one more paper, an identity and a photo
  insert into public.profile_identities (user_id, id_type, id_number) values (me, 'Passport', 'PA-0815')
    on conflict (user_id) do update set id_type = 'Passport', id_number = 'PA-0815';
  select r.id into approved from public.requests r where r.user_id = me and r.status = 'approved' limit 1;
  perform tests.same('the cast has an approved request of hers', approved is not null, true);
  select count(*) into sent from public.requests x where x.user_id = me;

  -- the copy
  perform tests.check('anon', 'select public.my_data()', 'refused');
  r := tests.act('alice', 'select public.my_data()');
  perform tests.same('her address', r #>> '{account,email}', 'alice@tests.example');
  perform tests.same('all her requests', jsonb_array_length(r -> 'requests'), sent);
  perform tests.same('her document', r #>> '{identity_document,id_number}', 'PA-0815');
  perform tests.same('of others nothing', r::text like '%bob@tests.example%', false);
  perform tests.same('no keys of ours', (r -> 'requests')::text like '%submit_key%', false);

  -- not by accident, and not by anybody else
  perform tests.check('anon', 'select public.close_account(''alice@tests.example'')', 'refused');
  perform tests.check('alice', 'select public.close_account(''bob@tests.example'')', 'hint:validation_failed');
  perform tests.check('alice', 'select public.close_account('''')', 'hint:validation_failed');
  perform tests.check('alice', 'select private.erase_people(array[''r-ax''])', 'refused');
  -- the only admin of an open organization has to settle that first
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

  -- a colleague who goes: the organization stays
  r := tests.act('manager', 'select public.close_account(''manager@tests.example'')');
  perform tests.same('the organization stays', (select status from public.nonprofits n where n.id = 'x'), 'active');
end $$;

-- What time takes.
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
  -- guests' requests, by what became of them and how many months ago
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

select tests.count() as checks;
rollback;
