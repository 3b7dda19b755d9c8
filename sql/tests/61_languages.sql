-- Mails in the reader's language, notifications as code and parameters.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- texts
do $$
begin
  perform tests.same('a place', private.say('fr', 'mail.requestCode.subject', '{"code": "123456", "number": "REQ-001"}'), '123456 ouvre REQ-001');
  perform tests.same('what is typed stays as it is', private.say('en', 'mail.declined.p1', '{"nonprofit": "{category}", "category": "Rent {x}"}'),
    '{category} cannot help with your request for Rent {x}. They write:');
  perform tests.same('one', private.say('es', 'mail.couldNotHelp.after', '{"count": 1}') like '%1 organización más la tiene%', true);
  perform tests.same('several', private.say('es', 'mail.couldNotHelp.after', '{"count": 2}') like '%2 organizaciones más la tienen%', true);
  perform tests.same('a name that we know', private.say('ht', 'mail.sent.p1', '{"category": "Rent Support", "nonprofits": "A"}'), 'Demann ou pou Èd pou lwaye ale jwenn A.');
  perform tests.same('a name that we do not know', private.say('ht', 'mail.sent.p1', '{"category": "Boats", "nonprofits": "A"}'), 'Demann ou pou Boats ale jwenn A.');
  perform tests.same('no such message', private.say('fr', 'mail.nothing', '{}'), null::text);
  perform tests.same('money', array[private.money('en', 1250), private.money('es', 1250.5), private.money('fr', 1250.5), private.money('ht', 1250)],
    array['$1250', '$1,250.50', U&'1\00a0250,50\00a0$US', U&'1\00a0250\00a0$US']);
  perform tests.same('days', array[private.day('en', '2026-11-03'), private.day('es', '2026-11-03'), private.day('fr', '2026-08-03'), private.day('ht', '2026-11-03')],
    array['November 3, 2026', '3 de noviembre de 2026', '3 août 2026', '3 novanm 2026']);
  perform tests.same('the first of a month', array[private.day('fr', '2026-12-01'), private.day('fr', '2026-12-21')], array['1er décembre 2026', '21 décembre 2026']);
end $$;

-- whose language
do $$
declare r record;
begin
  for r in select * from (values ('{"accept-language": "fr-CA,en;q=0.5"}', 'fr'), ('{"accept-language": "de-AT, ht;q=0.9, es"}', 'ht'), ('{"accept-language": "EN-us"}', 'en'),
    ('{"accept-language": "frr,*"}', 'en'), ('{}', 'en'), ('', 'en')) t (headers, expected)
  loop
    perform set_config('request.headers', r.headers, true);
    perform tests.same(r.headers, private.caller_language(), r.expected);
  end loop;
  perform tests.same('kept', tests.act('alice', 'select to_jsonb(public.keep_language(''ht''))'), '"ht"'::jsonb);
  perform tests.check('alice', 'select public.keep_language(''de'')', 'hint:validation_failed');
  perform tests.check('alice', 'select public.keep_language(null)', 'hint:validation_failed');
  perform tests.same('on the profile', (select language from public.profiles where id = tests.id('alice')), 'ht');
  perform set_config('request.headers', '{"accept-language": "es"}', true);
  perform tests.same('an account''s own', private.language_for('ALICE@tests.example'), 'ht');
  perform tests.same('a stranger''s page', private.language_for('nobody@tests.example'), 'es');
end $$;

-- A person without an account who wrote on a French page, and staff with English pages.
do $$
declare sent jsonb; t text; a constant text := 'marie@tests.example'; n public.notifications;
begin
  perform set_config('request.headers', '{"accept-language": "fr"}', true);
  sent := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "marie@tests.example", "first_name": "Marie"}') || ')');
  t := tests.mail_text(a, '%nous avons votre demande');
  perform tests.same('greeting', t like '%Bonjour Marie,%', true);
  perform tests.same('around it', t like '%Nous ne demandons jamais votre mot de passe%' and t not like '%browser%', true);
  perform tests.same('the page says which', (select language from public.requests where id = sent ->> 'id'), 'fr');
  perform set_config('request.headers', '{"accept-language": "en"}', true);
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Une photo'')', sent ->> 'id'));
  t := tests.mail_text(a, '%encore une chose%');
  perform tests.same('asked', t like '%On vous écrit%' and t like '%"Une photo"%' and t like '%un code qui ouvre votre demande%', true);
  -- The list is in the person's language and in the order of the checklist, followed by the staff's own notes.
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Bon courage'', array[''rent'', ''identity''])', sent ->> 'id'));
  perform tests.same('list', (select pending_notes from public.requests where id = sent ->> 'id'),
    E'– Une photo de votre carte d’identité ou passeport.\n– Votre bail, ou une lettre de votre propriétaire.\n\nBon courage');
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', items => array[''bill''])', sent ->> 'id'));
  perform tests.same('list alone', (select pending_notes from public.requests where id = sent ->> 'id'), '– La facture à payer. Une photo suffit.');
  perform tests.check('manager', format('select public.request_more_info(%L, ''x'', ''x'', array[''password''])', sent ->> 'id'), 'hint:validation_failed');
  perform tests.same('the button leads to the code', t like '%/open-request?number=' || (sent ->> 'request_number') || E'&lang=fr\n%', true);
  perform tests.act('manager', format('select public.approve_request(%L, ''x'', 250)', sent ->> 'id'));
  perform tests.same('approved', tests.mails(a, '%votre demande est acceptée'), 1);
  select * into n from public.notifications where request_id = sent ->> 'id' and user_id = tests.id('manager') and code like 'newRequest%';
  perform tests.same('a notification is a code', n.params ->> 'number', sent ->> 'request_number');
  perform tests.same('and English words', n.title, 'New request ' || (sent ->> 'request_number'));
end $$;

-- An account gets its chosen language, whatever page the request was sent from.
do $$
declare sent jsonb; n public.notifications;
begin
  perform set_config('request.headers', '{"accept-language": "en"}', true);
  sent := tests.act('alice', 'select public.submit_request(' || tests.answers() || ')');
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''No money left'')', sent ->> 'id'));
  select * into n from public.notifications where request_id = sent ->> 'id' and user_id = tests.id('alice') and code in ('declined', 'couldNotHelp');
  perform tests.same('told', n.params ->> 'number', sent ->> 'request_number');
  perform tests.same('mailed in Creole', tests.mails('alice@tests.example', '%: yo refize demann ou') + tests.mails('alice@tests.example', '%: yon òganizasyon pa t kapab ede'), 1);
end $$;

-- The role in an invitation, and a donor without a name: stored as none, told in the reader's language.
do $$
declare d jsonb; n public.notifications;
begin
  perform tests.act('alice', 'select to_jsonb(public.keep_language(''es''))');
  perform tests.run('admin', 'insert into public.nonprofit_team_members (nonprofit_id, email, full_name, role) values (''x'', ''alice@tests.example'', ''Alice'', ''employee'')');
  perform tests.same('role', tests.mail_text('alice@tests.example', 'Únete a%') like '%a su equipo (personal)%', true);
  perform tests.same('in English', private.say('en', 'mail.invitation.p1', '{"nonprofit": "X", "role": "employee"}') like 'X invites you to join its team as employee.%', true);
  d := tests.act('anon', 'select public.pledge_donation(''{"nonprofit_id": "x", "amount": "12", "email": "quiet@tests.example", "key": "' || gen_random_uuid() || '"}'')');
  select * into n from public.notifications where user_id = tests.id('manager') and code = 'pledged' and params ->> 'amount' = '12';
  perform tests.same('no name', n.params ->> 'donor', '');
  perform tests.same('English words', n.message, 'A donor wants to give. Mark it received when the money is here.');
  perform tests.act('manager', 'select public.receive_donation(' || quote_literal(d ->> 'donation_id') || ')');
  perform tests.same('nor in the ledger', (select donor from public.budget_transactions where donation_id = d ->> 'donation_id'), null::text);
  update public.profiles set full_name = null, email = null where id = tests.id('donor');
  perform tests.act('donor', 'select public.reply_to_donor_message(''dm-1'', ''Thanks'')');
  perform tests.same('nor in the inbox', (select from_name from public.donor_message_replies where message = 'Thanks'), '');
  select * into n from public.notifications where user_id = tests.id('manager') and code = 'donorAnswered';
  perform tests.same('an answer', n.message, 'A donor: Re: Hello all');
end $$;

-- Sign-in mails: the profile's language, or else the one of the sign-up; links with valid targets.
do $$
declare
  a constant text := 'new@tests.example';
  t text;
  told constant jsonb := '{"token": "123456", "token_hash": "abc", "site_url": "https://api.example/auth/v1", "redirect_to": "https://app.example/in?a=1&b=é"}';
  person constant jsonb := jsonb_build_object('id', gen_random_uuid(), 'email', a, 'new_email', 'other@tests.example', 'user_metadata', '{"language": "fr"}'::jsonb);
  function_of constant text := 'select private.sign_in_mail(jsonb_build_object(''user'', %L::jsonb, ''email_data'', %L::jsonb))';
begin
  perform private.sign_in_mail(jsonb_build_object('user', person, 'email_data', told || '{"email_action_type": "signup"}'));
  t := tests.mail_text(a, 'Confirmez votre adresse e-mail');
  perform tests.same('its link', t like '%https://api.example/auth/v1/verify?token=abc&type=signup&redirect_to=https%3A%2F%2Fapp.example%2Fin%3Fa%3D1%26b%3D%C3%A9' || E'\n%', true);
  perform private.sign_in_mail(jsonb_build_object('user', person || '{"user_metadata": {"language": "xx"}}', 'email_data', told || '{"email_action_type": "recovery"}'));
  perform tests.same('no language of ours', tests.mails(a, 'Reset your password'), 1);
  perform tests.act('alice', 'select to_jsonb(public.keep_language(''es''))');
  perform private.sign_in_mail(jsonb_build_object('user', person || jsonb_build_object('id', tests.id('alice')), 'email_data', told || '{"email_action_type": "magiclink"}'));
  perform tests.same('the profile first', tests.mails(a, 'Tu enlace para entrar'), 1);
  perform private.sign_in_mail(jsonb_build_object('user', person, 'email_data', told || '{"email_action_type": "reauthentication"}'));
  perform tests.same('a code', tests.mail_text(a, '123456 est votre code%') like '%123456%', true);
  -- Both halves of an address change, each with its own hash.
  perform private.sign_in_mail(jsonb_build_object('user', person, 'email_data', told || '{"email_action_type": "email_change", "token_hash_new": "def"}'));
  perform tests.same('the new address', tests.mail_text('other@tests.example', 'Confirmez votre nouvelle%') like '%new@tests.example%token=abc&%', true);
  perform tests.same('the old address', tests.mail_text(a, 'Confirmez votre nouvelle%') like '%other@tests.example%token=def&%', true);
  perform private.sign_in_mail(jsonb_build_object('user', person, 'email_data', told || '{"email_action_type": "email_changed_notification", "old_email": "old@tests.example"}'));
  perform tests.same('told where it was', tests.mail_text('old@tests.example', 'Votre adresse e-mail a changé') like '%écrivez-nous%', true);
  perform private.sign_in_mail(jsonb_build_object('user', person, 'email_data', told || '{"email_action_type": "mfa_factor_enrolled_notification"}'));
  perform tests.same('a new way to sign in', tests.mails(a, 'Les façons de se connecter ont changé'), 1);
  perform tests.check('alice', format(function_of, person, told), 'refused');
end $$;

select tests.count() as checks;
rollback;
