-- Helpers for the tests in this folder. The files run in name order on a fresh database (platform, auth, sql/app; no
-- seed needed) by its owner, each as one simple query. A file raises an error if a check fails; its last result is
-- its number of checks. All but this file end with a rollback.

drop schema if exists tests cascade;
create schema tests;

-- The tests' people by short name, with fixed ids.
create function tests.id(who text) returns uuid language sql immutable as $$
  select ('7e570000-0000-4000-8000-' || substr(md5(who), 1, 12))::uuid
$$;

create function tests.account(who text, role text, claims jsonb default '{}') returns void language plpgsql as $$
begin
  insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
  values ('00000000-0000-0000-0000-000000000000', tests.id(who), 'authenticated', 'authenticated', who || '@tests.example', 'x', now(), '{}',
    jsonb_build_object('full_name', initcap(who) || ' Tester', 'role', role), now(), now());
end $$;

-- Switches to `anon`, `service` or a person.
create function tests.become(who text) returns void language plpgsql as $$
begin
  perform set_config('request.jwt.claims', case who when 'anon' then '{"role": "anon"}' when 'service' then '{"role": "service_role"}'
    else jsonb_build_object('role', 'authenticated', 'sub', tests.id(who), 'email', who || '@tests.example')::text end, true);
  perform set_config('role', case who when 'anon' then 'anon' when 'service' then 'service_role' else 'authenticated' end, true);
end $$;
create function tests.count() returns int language sql as $$
  select coalesce(nullif(current_setting('tests.count', true), ''), '0')::int
$$;
create function tests.counted() returns void language plpgsql as $$
begin
  perform set_config('tests.count', (tests.count() + 1)::text, false);
end $$;
create function tests.start() returns void language plpgsql as $$
begin
  perform set_config('tests.count', '0', false);
end $$;

-- The outcome of a statement run as `who`: 'rows=N', 'refused' (42501), 'hint:<code>' or 'state:<sqlstate>'. Rolled
-- back afterwards.
create function tests.outcome(who text, statement text) returns text language plpgsql as $$
declare n bigint; result text; hint text; state text; message text; detail text;
begin
  begin
    perform tests.become(who);
    execute statement;
    get diagnostics n = row_count;
    raise exception using errcode = 'ZZ999', message = n::text;
  exception
    when sqlstate 'ZZ999' then result := 'rows=' || sqlerrm;
    when others then
      get stacked diagnostics hint = pg_exception_hint, state = returned_sqlstate, message = message_text, detail = pg_exception_detail;
      result := case when state = '42501' then 'refused' when state like 'PT%' then 'hint:' || hint else 'state:' || state end;
      perform set_config('tests.last_error', state || ' ' || message, false);
      perform set_config('tests.last_detail', detail, false);
  end;
  return result;
end $$;

-- The pairs of person and right that a file has checked; its last check reports missing ones.
create table tests.checked (who text, verb text, object text, primary key (who, verb, object));

-- What a statement does to what: a verb and schema.table, schema.function or bucket:<id>; nulls if it is anything else.
create function tests.aim(statement text, out verb text, out object text) language plpgsql immutable as $$
begin
  object := substring(statement from '^\s*select ((?:public|private|functions)\.(?:"[^"]+"|\w+))\s*\(');
  if object is not null then
    verb := 'execute';
    return;
  end if;
  verb := substring(lower(statement) from '^\s*(select|insert|update|delete)\M');
  object := substring(lower(statement) from case verb when 'insert' then 'insert into ([a-z_.]+)' when 'update' then 'update ([a-z_.]+)' else 'from ([a-z_.]+)' end);
  if object = 'storage.objects' then
    object := 'bucket:' || substring(statement from case verb when 'insert' then 'values \(''([a-z-]+)''' else 'bucket_id = ''([a-z-]+)''' end);
  end if;
end $$;

create function tests.check(who text, statement text, expected text) returns void language plpgsql as $$
declare got text := tests.outcome(who, statement); aim record := tests.aim(statement);
begin
  perform tests.counted();
  if aim.verb is not null and aim.object is not null then
    insert into tests.checked values (who, aim.verb, aim.object) on conflict do nothing;
  end if;
  if got is distinct from expected then
    raise exception 'as %: % expected %, got % %', who, statement, expected, got,
      case when got like 'rows=%' then '' else '(' || coalesce(current_setting('tests.last_error', true), '') || ')' end;
  end if;
end $$;

-- The people of a matrix: one per database role and team role, one of another organization, and an unrelated one.
create table tests.people (n int generated always as identity, who text primary key, db_role text not null, team_role text);
insert into tests.people (who, db_role, team_role) values ('anon', 'anon', null), ('alice', 'authenticated', null), ('bob', 'authenticated', null),
  ('employee', 'authenticated', 'employee'), ('manager', 'authenticated', 'manager'), ('admin', 'authenticated', 'admin'),
  ('volunteer', 'authenticated', 'volunteer'), ('gone', 'authenticated', null), ('manager_y', 'authenticated', 'manager'),
  ('admin_y', 'authenticated', 'admin'), ('donor', 'authenticated', null), ('stranger', 'authenticated', null);

-- Unchecked pairs of this file: every person × verb × object, with the objects from the catalog. '' if none is missing.
create function tests.missing_checks(verbs text[], objects text[]) returns text language sql as $$
  select coalesce(string_agg(p.who || ' ' || v || ' ' || o, ', ' order by o, v, p.n), '')
  from tests.people p cross join unnest(verbs) v cross join unnest(objects) o
  where not exists (select 1 from tests.checked c where (c.who, c.verb, c.object) = (p.who, v, o))
$$;

-- Runs a statement as everybody: `allowed` has the outcome for some, `others` for the rest, and anon its own.
create function tests.matrix(statement text, allowed jsonb, others text default 'rows=0', for_anon text default 'refused') returns void language plpgsql as $$
declare who text;
begin
  for who in select p.who from tests.people p order by p.n loop
    perform tests.check(who, statement, coalesce(allowed ->> who, case who when 'anon' then for_anon else others end));
  end loop;
end $$;

-- A statement that violates a form's rule is refused with the form's message for that field only.
create function tests.tells(who text, statement text, field text, message text) returns void language plpgsql as $$
begin
  perform tests.check(who, statement, 'hint:validation_failed');
  perform tests.same(statement, current_setting('tests.last_detail')::jsonb -> 'fields', jsonb_build_object(field, message));
end $$;

-- Runs a statement as a person and keeps its effects. Returns its single value as json.
create function tests.act(who text, statement text) returns jsonb language plpgsql as $$
declare v jsonb;
begin
  perform tests.become(who);
  execute 'select to_jsonb(x) from (' || statement || ') y (x)' into v;
  perform set_config('role', 'none', true);
  perform set_config('request.jwt.claims', '', true);
  return v;
end $$;

-- The same for a statement without a result.
create function tests.run(who text, statement text) returns void language plpgsql as $$
begin
  perform tests.become(who);
  execute statement;
  perform set_config('role', 'none', true);
  perform set_config('request.jwt.claims', '', true);
end $$;

create function tests.same(what text, got anycompatible, expected anycompatible) returns void language plpgsql as $$
begin
  perform tests.counted();
  if got is distinct from expected then
    raise exception '%: expected %, got %', what, expected, got;
  end if;
end $$;

-- Number of queued mails to an address whose subject matches the pattern.
create function tests.mails(address text, pattern text) returns int language plpgsql as $$
declare n int; c text;
begin
  select attname into c from pg_attribute where attrelid = '_supavisor.outbox'::regclass and attname in ('recipient', 'to_addr');
  execute format('select count(*) from _supavisor.outbox where %I = $1 and subject ilike $2', c) into n using address, pattern;
  return n;
end $$;
-- The text of the newest such mail.
create function tests.mail_text(address text, pattern text) returns text language plpgsql as $$
declare t text; c text;
begin
  select attname into c from pg_attribute where attrelid = '_supavisor.outbox'::regclass and attname in ('recipient', 'to_addr');
  execute format('select body_text from _supavisor.outbox where %I = $1 and subject ilike $2 order by created_at desc, ctid desc limit 1', c) into t using address, pattern;
  return t;
end $$;

-- Answers for a complete request, to be changed with ||.
create function tests.answers(changes jsonb default '{}') returns text language sql as $$
  select quote_literal('{"category_id": "t-cat", "nonprofits": ["x"], "description": "We need food for two weeks.", "amount": "250", "contact_consent": true,
    "first_name": "Alice", "last_name": "Tester", "email": "alice@tests.example", "phone": "12345", "address": "1 Long Street", "city": "Portland", "state": "ME", "postal_code": "04101"}'::jsonb
    || jsonb_build_object('key', gen_random_uuid()) || changes)
$$;

-- Organizations x and y with their people, and Alice's and Bob's requests. x: admin, manager, manager2, employee,
-- volunteer, gone (an inactive manager); y: admin_y, manager_y. r-ax: Alice to x and y; r-by: Bob to y; r-draft:
-- Alice's draft; r-done: Alice's, approved by x.
create function tests.cast_of_people() returns void language plpgsql as $$
declare who text;
begin
  foreach who in array array['alice', 'bob', 'donor', 'stranger'] loop perform tests.account(who, 'requester'); end loop;
  foreach who in array array['admin', 'manager', 'manager2', 'employee', 'volunteer', 'gone', 'admin_y', 'manager_y'] loop perform tests.account(who, 'nonprofit'); end loop;
  -- Staff have proved their addresses, as accepting an invitation does. Without that, their invitations and donor
  -- messages are not sent.
  update private.account_addresses set proved_at = now() where user_id in (select tests.id(w) from unnest(array['admin', 'manager', 'manager2', 'employee', 'volunteer', 'admin_y', 'manager_y']) w);
  insert into public.categories (id, name, description) values ('t-cat', 'Test Food', 'For tests');
  insert into public.nonprofits (id, name, legal_status, registration_number, employee_count, mission, admin_user_id) values
    ('x', 'Org X', 'charity', '1', 3, 'Help', tests.id('admin')), ('y', 'Org Y', 'charity', '2', 3, 'Help too', tests.id('admin_y'));
  insert into public.nonprofit_team_members (id, nonprofit_id, email, full_name, role, user_id, is_active, invited_at, joined_at)
  select 'm-' || w, o, w || '@tests.example', w, r, tests.id(w)::text, w <> 'gone', now(), now()
  from (values ('manager', 'x', 'manager'), ('manager2', 'x', 'manager'), ('employee', 'x', 'employee'), ('volunteer', 'x', 'volunteer'), ('gone', 'x', 'manager'), ('manager_y', 'y', 'manager')) t (w, o, r);
  insert into public.categories (id, name, nonprofit_id) values ('t-cat-x', 'Own of X', 'x'), ('t-cat-y', 'Own of Y', 'y');
  insert into public.requests (id, request_number, user_id, category_id, description, amount, amount_requested, amount_approved, status, nonprofits, first_name, last_name, email, phone,
    address, city, state, postal_code, contact_consent, claimed_by, submitted_at, decided_at)
  select i, n, tests.id(w), 't-cat', 'We need food for two weeks.', '$250', 250, case s when 'approved' then 250 end, s, np, initcap(w), 'Tester', w || '@tests.example', '12345',
    '1 Long Street', 'Portland', 'ME', '04101', true, case s when 'approved' then 'x' end, now(), case s when 'approved' then now() end
  from (values ('r-ax', 'REQ-900001', 'alice', 'pending', array['x', 'y']), ('r-by', 'REQ-900002', 'bob', 'pending', array['y']), ('r-done', 'REQ-900003', 'alice', 'approved', array['x'])) t (i, n, w, s, np);
  insert into public.requests (id, user_id, category_id, description) values ('r-draft', tests.id('alice'), 't-cat', 'half');
  insert into public.request_nonprofits (request_id, nonprofit_id, state) values ('r-ax', 'x', 'open'), ('r-ax', 'y', 'open'), ('r-by', 'y', 'open'), ('r-done', 'x', 'claimed');
  insert into public.request_events (request_id, type, actor, nonprofit_id, for_requester) values ('r-ax', 'submitted', 'requester', null, true), ('r-ax', 'first_approval', 'nonprofit', 'x', false);
  insert into storage.objects (bucket_id, name) values ('request-documents', 'r-ax/a.pdf'), ('request-documents', 'r-draft/new.pdf'),
    ('profile-photos', tests.id('alice') || '/me.png'), ('profile-photos', tests.id('bob') || '/me.png'), ('logos', 'x/logo.png');
  insert into public.request_documents (id, request_id, name, path, mime_type, size_bytes) values ('d-ax', 'r-ax', 'a.pdf', 'r-ax/a.pdf', 'application/pdf', 10);
  insert into public.profile_identities (user_id, id_type, id_number) values (tests.id('alice'), 'Passport', 'X1');
  insert into public.notifications (id, user_id, title, message) values ('n-alice', tests.id('alice'), 't', 'm');
  insert into public.budget_allocations (nonprofit_id, category, amount) values ('x', 'Test Food', 1000);
  insert into public.donations (id, nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, received_at) values
    ('g-1', 'x', tests.id('donor'), 'Donor', 'donor@tests.example', 600, 'received', now()), ('g-2', 'x', null, 'Passer', 'passer@tests.example', 5, 'pledged', null);
  insert into public.budget_transactions (nonprofit_id, type, amount, donation_id, donor) values ('x', 'Donation', 600, 'g-1', 'Donor');
  insert into public.budget_transactions (nonprofit_id, type, amount, request_id, category) values ('x', 'Approval', 250, 'r-done', 'Test Food');
  insert into public.donor_messages (id, nonprofit_id, subject, message, sent_by) values ('dm-1', 'x', 'Hello all', 'Thank you for giving', tests.id('admin'));
  insert into public.donor_message_recipients (id, message_id, donor_user_id, donor_email) values ('dr-1', 'dm-1', tests.id('donor'), 'donor@tests.example');
  insert into public.donor_message_replies (id, message_id, nonprofit_id, donor_user_id, from_name, subject, message) values ('rp-1', 'dm-1', 'x', tests.id('donor'), 'Donor', 'Re: Hello all', 'Gladly');
end $$;

select 0 as checks;
