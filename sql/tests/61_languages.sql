-- Mails in the reader's language, notifications as code and parameters.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- words
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

-- a person without an account, who wrote on a French page, and staff whose pages are English
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
  -- the list is in the person's language, in the order of the checklist, the staff's own words stand below
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Bon courage'', array[''rent'', ''identity''])', sent ->> 'id'));
  perform tests.same('list', (select pending_notes from public.requests where id = sent ->> 'id'),
    E'– Une photo de votre carte d’identité ou passeport.\n– Votre bail, ou une lettre de votre propriétaire.\n\nBon courage');
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', items => array[''bill''])', sent ->> 'id'));
  perform tests.same('list alone', (select pending_notes from public.requests where id = sent ->> 'id'), '– La facture à payer. Une photo suffit.');
  perform tests.check('manager', format('select public.request_more_info(%L, ''x'', ''x'', array[''password''])', sent ->> 'id'), 'hint:validation_failed');
  perform tests.same('the button leads to the code', t like '%/open-request?number=' || (sent ->> 'request_number') || '%', true);
  perform tests.act('manager', format('select public.approve_request(%L, ''x'', 250)', sent ->> 'id'));
  perform tests.same('approved', tests.mails(a, '%votre demande est acceptée'), 1);
  select * into n from public.notifications where request_id = sent ->> 'id' and user_id = tests.id('manager') and code like 'newRequest%';
  perform tests.same('a notification is a code', n.params ->> 'number', sent ->> 'request_number');
  perform tests.same('and English words', n.title, 'New request ' || (sent ->> 'request_number'));
end $$;

-- an account reads what it chose, whatever page it was sent from
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

select tests.count() as checks;
rollback;
