-- A person who does everything that leaves a row, in every part they can have, closes the account. Then every column of every table that can
-- hold text, an id or JSON is searched for them. What may stay is named below, each with its reason.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- The columns in which any of these patterns occurs. Its arguments and the tests' own notes are not searched.
create function pg_temp.columns_with(patterns text[]) returns text[] language plpgsql as $$
declare t record; hits text[]; found text[] := '{}';
begin
  for t in
    select format('%I.%I', n.nspname, c.relname) as name,
      string_agg(format('case when bool_or(t.%I::text ilike any ($1)) then %L end', a.attname, n.nspname || '.' || c.relname || '.' || a.attname), ', ') as looks
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type y on y.oid = a.atttypid
    -- strings, lists, addresses of networks, and uuid, json, jsonb and the like
    where c.relkind in ('r', 'm') and y.typcategory in ('S', 'A', 'I', 'U') and y.typname <> 'bytea'
      and n.nspname not in ('pg_catalog', 'information_schema', 'tests') and n.nspname !~ '^pg_(toast|temp)'
    group by 1
  loop
    execute format('select array_remove(array[%s], null) from %s t', t.looks, t.name) into hits using patterns;
    found := found || hits;
  end loop;
  return array(select f from unnest(found) f order by 1);
end $$;

-- What staff, donors and requesters leave under an account's id, and where else a person is named.
create function pg_temp.patterns() returns text[] language sql as $$
  select array['%' || tests.id('zoraida') || '%', '%zoraida%', '%quillfeather%', '%207_555_0199%', '%2075550199%', '%ZQ-0815%', '%quill street%', '%quill lane%', '%198.51.100.77%']
$$;

-- A request of hers, with the changes.
create function pg_temp.ask(who text, changes jsonb) returns jsonb language sql as $$
  select tests.act(who, 'select public.submit_request(' || tests.answers('{"first_name": "Zoraida", "last_name": "Quillfeather", "email": "zoraida@tests.example",
    "phone": "+1 207 555 0199", "address": "7 Quill Street", "description": "Zoraida needs food until the new job starts.", "nonprofits": ["x"]}' || changes) || ')')
$$;
create function pg_temp.mailed(pattern text, subject text) returns text language sql as $$
  select substring(tests.mail_text('zoraida@tests.example', subject) from pattern)
$$;

-- Her account, as the server of schema auth keeps one.
do $$
declare me uuid := tests.id('zoraida'); session uuid := gen_random_uuid(); factor uuid := gen_random_uuid(); client uuid := gen_random_uuid(); flow uuid := gen_random_uuid();
begin
  perform tests.account('zoraida', 'nonprofit');
  update auth.users u set phone = '12075550199', raw_user_meta_data = u.raw_user_meta_data || '{"phone": "+1 207 555 0199"}', email_change = 'zoraida.new@tests.example' where u.id = me;
  insert into auth.identities (provider_id, user_id, identity_data, provider, created_at, last_sign_in_at) values
    (me, me, jsonb_build_object('sub', me, 'email', 'zoraida@tests.example', 'email_verified', true), 'email', '2026-01-02T03:04:05Z', '2026-02-03T04:05:06Z'),
    ('g-1', me, '{"sub": "g-1", "email": "Zoraida.Q@mail.example", "name": "Zoraida Q", "provider_id": "g-1"}', 'google', '2026-03-04T05:06:07Z', null);
  insert into auth.sessions (id, user_id, created_at, updated_at, aal, refreshed_at, user_agent, ip, tag, refresh_token_hmac_key) values
    (session, me, '2026-04-05T06:07:08Z', now(), 'aal1', '2026-04-06T07:08:09', 'Browser of Zoraida', '198.51.100.77', 'tag', 'a-secret-key'),
    (gen_random_uuid(), me, '2026-05-06T07:08:09Z', now(), 'aal1', null, null, null, null, null);
  insert into auth.refresh_tokens (token, user_id, revoked, created_at, session_id) values ('a-secret-token', me, false, now(), session);
  insert into auth.one_time_tokens (id, user_id, token_type, token_hash, relates_to) values (gen_random_uuid(), me, 'recovery_token', 'a-secret-hash', 'zoraida@tests.example');
  insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at, secret, phone) values
    (factor, me, 'Phone of Zoraida', 'phone', 'verified', '2026-06-01T01:01:01Z', now(), 'a-secret', '12075550199');
  insert into auth.mfa_recovery_code_sets (id, user_id, mfa_factor_id) values (gen_random_uuid(), me, factor);
  insert into auth.mfa_challenges (id, factor_id, created_at, ip_address) values (gen_random_uuid(), factor, now(), '198.51.100.77');
  insert into auth.webauthn_credentials (user_id, credential_id, public_key, friendly_name, created_at, last_used_at) values
    (me, '\x01', '\x02', 'Key of Zoraida', '2026-06-02T02:02:02Z', '2026-06-03T03:03:03Z');
  insert into auth.webauthn_challenges (user_id, challenge_type, session_data, expires_at) values (me, 'registration', jsonb_build_object('user', me), now() + interval '1 hour');
  insert into auth.oauth_clients (id, registration_type, redirect_uris, grant_types, client_name, token_endpoint_auth_method) values
    (client, 'manual', 'https://app.example', 'authorization_code', 'An app', 'none');
  insert into auth.oauth_authorizations (id, authorization_id, client_id, user_id, redirect_uri, scope) values (gen_random_uuid(), 'a-1', client, me, 'https://app.example', 'openid');
  insert into auth.oauth_consents (id, user_id, client_id, scopes, granted_at) values (gen_random_uuid(), me, client, 'openid', '2026-06-04T04:04:04Z');
  insert into auth.flow_state (id, user_id, provider_type, authentication_method, created_at) values (flow, me, 'google', 'oauth', now());
  insert into auth.pending_confirmations (id, user_id, token_hash, sent_at, client, made_account, user_metadata) values
    (gen_random_uuid(), me, 'h', now(), '198.51.100.77', false, '{"full_name": "Zoraida Quillfeather"}');
  insert into auth.unproved_addresses (user_id, email) values (me, 'zoraida@tests.example');
  insert into auth.audit_log_entries (id, payload, created_at, ip_address) values
    (gen_random_uuid(), json_build_object('actor_id', me, 'actor_username', 'zoraida@tests.example', 'action', 'login'), now(), '198.51.100.77');
end $$;

-- What she does as a person in need, as a donor and as staff of Y, and what others do about her.
do $$
declare me uuid := tests.id('zoraida'); approved text; other text; slot jsonb; k uuid := gen_random_uuid(); pledge text; message text;
begin
  perform set_config('ferrobase.client_address', '198.51.100.77', true);
  insert into storage.objects (bucket_id, name, owner, owner_id) values ('profile-photos', me || '/me.png', me, me::text), ('logos', 'y/logo.png', me, me::text);
  perform tests.act('zoraida', format('select public.save_profile(%L)', jsonb_build_object('first_name', 'Zoraida', 'middle_name', 'Quillfeather', 'last_name', 'Quillfeather', 'phone', '+1 207 555 0199',
    'bio', 'I live in Quill Lane.', 'birthday', '1980-02-03', 'country', 'US', 'id_type', 'Passport', 'id_number', 'ZQ-0815', 'photo_path', me || '/me.png', 'sms_consent', true)));
  -- her address is proved by a code; another one is on its way
  perform tests.act('zoraida', 'select public.send_address_code()');
  perform tests.same('her address is proved', tests.act('zoraida', format('select public.check_address_code(''zoraida@tests.example'', %L)', pg_temp.mailed('\m[0-9]{6}\M', '%code%'))) ->> 'ok', 'true');
  perform tests.act('anon', 'select public.send_address_code(''zoraida@tests.example'')');

  -- requests: one answered and granted, one declined, one that waits, a draft
  approved := pg_temp.ask('zoraida', '{"nonprofits": ["x", "y"]}') ->> 'id';
  perform tests.act('employee', format('select public.mark_request_opened(%L, ''x'')', approved));
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Dear Zoraida, please send the letter.'')', approved));
  insert into public.request_documents (request_id, name, path, mime_type, size_bytes, uploaded_by) values (approved, 'zoraida.pdf', approved || '/zoraida.pdf', 'application/pdf', 9, me);
  insert into storage.objects (bucket_id, name, owner_id) values ('request-documents', approved || '/zoraida.pdf', me::text);
  perform tests.act('zoraida', format('select public.answer_request_info(%L, ''The letter of Zoraida is here.'')', approved));
  perform tests.act('zoraida', format('select public.correct_request(%L, ''{"city": "Quill Lane"}'')', approved));
  perform tests.act('anon', format('select public.send_request_code(%L)', (select x.request_number from public.requests x where x.id = approved)));
  perform tests.act('manager', format('select public.approve_request(%L, ''x'', 20, true)', approved));
  other := pg_temp.ask('zoraida', '{}') ->> 'id';
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''Zoraida lives outside our area.'')', other));
  perform pg_temp.ask('zoraida', '{}');
  insert into public.requests (user_id, category_id, title, description) values (me, 't-cat', 'Zoraida', 'half of what Zoraida needs');
  -- one more is sent signed out, with a paper in a guest's place, and granted
  slot := tests.act('anon', format('select public.create_guest_upload_slot(%L, ''zoraida pay slip.pdf'', ''application/pdf'', 9)', k));
  insert into storage.objects (bucket_id, name, metadata) values ('request-documents', slot ->> 'path', '{"mimetype": "application/pdf", "size": 9}');
  other := pg_temp.ask('anon', jsonb_build_object('key', k, 'slots', jsonb_build_array(slot ->> 'id'))) ->> 'id';
  perform tests.same('nobody has it yet', (select x.user_id from public.requests x where x.id = other), null);
  perform tests.act('manager', format('select public.approve_request(%L, ''x'', 20, true)', other));

  -- a donor: a pledge, a gift, a gift that staff recorded, an answer to a message, the newsletter
  perform tests.act('zoraida', format('select public.pledge_donation(%L)', jsonb_build_object('key', gen_random_uuid(), 'nonprofit_id', 'x', 'amount', '5')));
  pledge := tests.act('zoraida', format('select public.pledge_donation(%L)', jsonb_build_object('key', gen_random_uuid(), 'nonprofit_id', 'x', 'amount', '50'))) ->> 'donation_id';
  perform tests.act('admin', format('select public.receive_donation(%L)', pledge));
  perform tests.act('admin', 'select public.record_donation(''x'', 7, ''Zoraida Quillfeather'', ''Zoraida@tests.example'')');
  update public.donations d set note = 'Zoraida called.' where d.id = pledge;
  message := tests.act('admin', 'select public.send_donor_message(''x'', ''Winter'', ''The pantry opens on Monday.'')') ->> 'id';
  perform tests.act('zoraida', format('select public.reply_to_donor_message(%L, ''Zoraida will come.'', %L)', message, gen_random_uuid()));
  perform tests.act('anon', 'select public.subscribe_newsletter(''zoraida@tests.example'')');

  -- staff of Y by invitation; and X has invited her, too
  perform tests.run('admin_y', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''y'', ''zoraida@tests.example'', ''Zoraida Quillfeather'', ''manager'')');
  perform tests.act('zoraida', format('select public.accept_team_invitation(%L)', pg_temp.mailed('team-invitation\?token=([0-9a-f]+)', 'Join %')));
  perform tests.run('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''x'', ''Zoraida@tests.example'', ''Zoraida Quillfeather'', ''employee'')');
  perform tests.run('zoraida', 'insert into public.saved_replies (nonprofit_id, kind, title, body) values (''y'', ''info'', ''Letter'', ''Please send the letter.'')');
  perform tests.act('zoraida', 'select public.mark_request_opened(''r-by'', ''y'')');
  perform tests.act('zoraida', 'select public.assign_request(''r-by'', ''y'', ''m-manager_y'')');
  perform tests.act('admin_y', 'select public.set_second_approval(''y'', 10)');
  perform tests.act('zoraida', 'select public.approve_request(''r-by'', ''y'', 20, true)');
  perform tests.act('zoraida', format('select public.assign_request(''r-ax'', ''y'', %L)', (select m.id from public.nonprofit_team_members m where m.user_id = me::text)));
  perform tests.act('zoraida', 'select public.approve_request(''r-ax'', ''y'', 5, true)');
  perform tests.act('zoraida', 'select public.record_payout(''r-ax'', 2)');
  perform tests.act('zoraida', 'select public.set_budget_allocation(''y'', ''Test Food'', 100)');
  perform tests.act('zoraida', 'select public.record_donation(''y'', 9, ''Passer'')');
  perform tests.act('zoraida', 'select public.send_donor_message(''y'', ''Spring'', ''The pantry is closed.'')');
  update public.nonprofit_team_members m set role = 'admin' where m.user_id = me::text;
  update public.nonprofits n set admin_user_id = me where n.id = 'y';
  perform tests.run('zoraida', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''y'', ''later@tests.example'', ''Later'', ''employee'')');

  -- what the server keeps beside
  insert into _supavisor.sms_counts (day, number) values (current_date, '+12075550199');
  insert into _supavisor.sms_stopped (number) values ('+12075550199');
  insert into _supavisor.resumable_uploads (id, bucket_id, key, owner_id, metadata, expires_at) values
    (gen_random_uuid(), 'profile-photos', me || '/new.png', me::text, jsonb_build_object('name', 'zoraida.png'), now());
  insert into storage.s3_multipart_uploads (id, upload_signature, bucket_id, key, version, owner_id) values ('u-1', 's', 'profile-photos', me || '/parts.png', 'v', me::text);
  insert into storage.s3_multipart_uploads_parts (upload_id, part_number, bucket_id, key, etag, owner_id, version) values ('u-1', 1, 'profile-photos', me || '/parts.png', 'e', me::text, 'v');
end $$;

-- What may stay, and why. Nothing else may, and everything here does: what no longer stays is to be taken from the list.
create table pg_temp.stays (place text primary key, reason text not null);
insert into pg_temp.stays select unnest(places), reason from (values
  (array['public.donations.donor_name', 'public.budget_transactions.donor'],
    'a received gift keeps the name that its donor gave, for the accounts; the page says so before'),
  (array['public.budget_allocations.updated_by', 'public.budget_transactions.created_by', 'public.donations.recorded_by', 'public.donor_messages.sent_by',
      'public.request_events.actor_user_id', 'public.request_nonprofits.acted_by', 'public.request_nonprofits.opened_by', 'private.first_approvals.approved_by',
      'private.team_invitations.invited_by', 'storage.objects.owner', 'storage.objects.owner_id'],
    'the number of the account that acted for an organization: it tells one hand from another, as two approvals need, and leads to nobody'),
  (array['private.rate_limits.key'], 'a limit must outlast the account that it is for; two days'),
  (array['_supavisor.sms_counts.number'], 'the same; a week'),
  (array['_supavisor.sms_stopped.number'], 'a STOP is respected for good'),
  (array['_supavisor.outbox.recipient', '_supavisor.outbox.body_text', '_supavisor.outbox.body_html'], 'mail on its way, the last one says that the account is closed'),
  (array['auth.flow_state.user_id'], 'a sign-in in progress; a day'),
  (array['_supavisor.resumable_uploads.key', '_supavisor.resumable_uploads.metadata', '_supavisor.resumable_uploads.owner_id', 'storage.s3_multipart_uploads.key',
      'storage.s3_multipart_uploads.owner_id', 'storage.s3_multipart_uploads_parts.key', 'storage.s3_multipart_uploads_parts.owner_id'], 'an upload in progress; a day'),
  (array['auth.audit_log_entries.payload', 'auth.audit_log_entries.ip_address'], 'until the operator deletes it (docs/privacy.md)')) t (places, reason);

-- Columns whose name says that they hold a person, and that she is not in before.
create table pg_temp.others (place text primary key, reason text not null);
insert into pg_temp.others select unnest(places), reason from (values
  (array['_supavisor.admin_audit.actor', '_supavisor.admin_audit.address'], 'a key or a command of the operator'),
  (array['_supavisor.inbox.recipient'], 'of a development server'),
  (array['_supavisor.seeded_users.user_id'], 'people of the demo data'),
  (array['auth.saml_relay_states.for_email'], 'never written'),
  (array['auth.oauth_clients.client_name', 'public.nonprofits.email', 'public.nonprofits.phone', 'public.requests.claimed_by', 'public.request_events.actor',
      'storage.buckets.owner', 'storage.buckets.owner_id', 'storage.iceberg_namespaces.bucket_name', 'storage.iceberg_tables.bucket_name'], 'no person''s')) t (places, reason);

do $$
declare me uuid := tests.id('zoraida'); before text[]; after text[]; data jsonb;
begin
  before := pg_temp.columns_with(pg_temp.patterns());
  -- A column that is new and named like these is either filled above, or in the list of others.
  perform tests.same('columns that should hold her before', (select coalesce(string_agg(c.place, ', ' order by c.place), '') from (
      select n.nspname || '.' || t.relname || '.' || a.attname as place from pg_class t join pg_namespace n on n.oid = t.relnamespace
      join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped join pg_type y on y.oid = a.atttypid
      where t.relkind in ('r', 'm') and y.typcategory in ('S', 'A', 'I', 'U') and y.typname <> 'bytea'
        and n.nspname not in ('pg_catalog', 'information_schema', 'tests') and n.nspname !~ '^pg_(toast|temp)'
        and a.attname ~ '(user_id|email|phone|owner|owner_id|_by|_name|donor|asker|actor|recipient|address|ip)$') c
    where c.place <> all (before) and c.place not in (select o.place from pg_temp.others o)), '');

  -- the export: how she signs in, and where she is signed in, without a secret
  data := tests.act('zoraida', 'select public.my_data()');
  perform tests.same('her identities', data -> 'identities', '[
    {"provider": "email", "email": "zoraida@tests.example", "name": null, "created_at": "2026-01-02T03:04:05+00:00", "last_sign_in_at": "2026-02-03T04:05:06+00:00"},
    {"provider": "google", "email": "zoraida.q@mail.example", "name": "Zoraida Q", "created_at": "2026-03-04T05:06:07+00:00", "last_sign_in_at": null}]'::jsonb);
  perform tests.same('her sessions', data -> 'sessions', '[
    {"created_at": "2026-04-05T06:07:08+00:00", "last_refreshed_at": "2026-04-06T07:08:09+00:00", "user_agent": "Browser of Zoraida", "ip": "198.51.100.77"},
    {"created_at": "2026-05-06T07:08:09+00:00", "last_refreshed_at": null, "user_agent": null, "ip": null}]'::jsonb);
  perform tests.same('her second factors', data -> 'second_factors', '[
    {"type": "phone", "name": "Phone of Zoraida", "phone": "12075550199", "status": "verified", "created_at": "2026-06-01T01:01:01+00:00", "last_challenged_at": null}]'::jsonb);
  perform tests.same('her passkeys', data -> 'passkeys', '[
    {"name": "Key of Zoraida", "created_at": "2026-06-02T02:02:02+00:00", "last_used_at": "2026-06-03T03:03:03+00:00"}]'::jsonb);
  perform tests.same('her applications', data -> 'authorized_applications', '[
    {"name": "An app", "uri": null, "scopes": "openid", "granted_at": "2026-06-04T04:04:04+00:00", "revoked_at": null}]'::jsonb);
  perform tests.same('no secret', data::text like '%a-secret%', false);
  data := tests.act('bob', 'select public.my_data()');
  perform tests.same('nor anything of hers for others', concat(data -> 'identities', data -> 'sessions', data -> 'second_factors', data -> 'passkeys', data -> 'authorized_applications'), '[][][][][]');

  perform tests.act('zoraida', 'select public.close_account(''zoraida@tests.example'')');
  after := pg_temp.columns_with(pg_temp.patterns());
  perform tests.same('what stays without a reason', (select coalesce(string_agg(a, ', '), '') from unnest(after) a where a not in (select s.place from pg_temp.stays s)), '');
  perform tests.same('what has a reason and does not stay', (select coalesce(string_agg(s.place, ', '), '') from pg_temp.stays s where s.place <> all (after)), '');
  perform tests.same('files', (select string_agg(o.bucket_id || '/' || o.name, ', ') from storage.objects o where o.owner_id = me::text or o.name like 'guest/%'), 'logos/y/logo.png');
  perform tests.same('of those who asked, no number either', (select count(*)::int from public.request_events e where e.actor_user_id = me and e.actor <> 'nonprofit'), 0);
  perform tests.same('the colleague still knows what was handed over', (select string_agg(n.title || '; ' || (n.params ->> 'name'), ', ') from public.notifications n
    where n.user_id = tests.id('manager_y') and n.code = 'handedOver'), 'Org Y handed REQ-900002 to you; Org Y');
  perform tests.same('the organization has its admin', (select n.admin_user_id from public.nonprofits n where n.id = 'y'), tests.id('admin_y'));
end $$;

-- Whose address is not proved gets nothing deleted that was sent with it by somebody else.
do $$
declare sent text;
begin
  perform tests.account('yolanda', 'requester');
  sent := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "yolanda@tests.example"}') || ')') ->> 'id';
  perform tests.act('anon', 'select public.send_address_code(''yolanda@tests.example'')');
  perform tests.run('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''x'', ''yolanda@tests.example'', ''Yolanda'', ''employee'')');
  perform tests.act('yolanda', 'select public.close_account(''yolanda@tests.example'')');
  perform tests.same('the request', (select r.status || ' ' || r.email from public.requests r where r.id = sent), 'pending yolanda@tests.example');
  perform tests.same('the code', (select count(*)::int from private.address_codes c where c.email = 'yolanda@tests.example'), 1);
  perform tests.same('the invitation', (select m.user_id from public.nonprofit_team_members m where m.email = 'yolanda@tests.example'), 'pending');
end $$;

select tests.count() as checks;
rollback;
