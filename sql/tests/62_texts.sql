-- Text messages: only with consent, in the person's language, never after STOP.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';
update _supavisor.sms_rules set served = true;

-- Messages queued for a number, newest first.
create function pg_temp.texts(number text) returns text[] language sql as $$
  select coalesce(array_agg(o.body_text order by o.id desc), '{}') from _supavisor.outbox o where o.channel = 'sms' and o.recipient = number
$$;

do $$
declare r record;
begin
  for r in select * from (values ('(207) 555-0123', '+12075550123'), ('1 207 555 0123', '+12075550123'), ('+33 6 12 34 56 78', '+33612345678'),
    ('0033 6 12 34 56 78', '+33612345678'), ('12345', null), ('207 555 0123 ext. 4', null), ('+0 207 555 0123', null), (null, null)) t (given, expected)
  loop
    perform tests.same(coalesce(r.given, 'null'), private.sms_number(r.given), r.expected);
  end loop;
end $$;

-- Each text fits into one message of 160 characters in the GSM alphabet (any other character would reduce that to 70),
-- with the longest number and a site name of 30 characters.
do $$
declare l text; k text; said text;
begin
  foreach l in array array['en', 'es', 'fr', 'ht'] loop
    foreach k in array array['code', 'decided', 'asked'] loop
      said := private.say(l, 'mail.sms.' || k, jsonb_build_object('code', '123456', 'number', 'REQ-1234567', 'link', repeat('x', 30) || '/open-request?number=REQ-1234567' || case when l <> 'en' then '&lang=' || l else '' end));
      perform tests.same(l || ' ' || k || ': ' || said, length(said) <= 160 and said !~ '[^A-Za-z0-9 !"#%&''()*+,./:;<=>?_¡¿@$£¥§èéùìòÇØøÅåÄÖÑÜäöñüàÆæßÉ-]', true);
    end loop;
  end loop;
end $$;

-- A guest with consent gets code, question and decision by text in the page's language; without consent, only mails.
do $$
declare a jsonb; b jsonb; n constant text := '+12075550123';
begin
  perform set_config('request.headers', '{"accept-language": "fr"}', true);
  a := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "guest@tests.example", "phone": "(207) 555-0123", "sms_consent": true}') || ')');
  b := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "quiet@tests.example", "phone": "(207) 555-0199"}') || ')');
  perform set_config('request.headers', '', true);
  perform tests.same('sending texts nothing: the number may be anybody''s', pg_temp.texts(n), '{}');

  perform tests.same('asked for by text', tests.act('anon', format('select public.send_request_code(%L, ''sms'')', a ->> 'request_number')), '{"sent": true}'::jsonb);
  perform tests.same('the code, in French', (pg_temp.texts(n))[1] ~ ('^AidBridge: [0-9]{6} ouvre .*' || (a ->> 'request_number')), true);
  perform tests.same('and not by mail', tests.mails('guest@tests.example', '%' || (a ->> 'request_number') || '%'), 1);
  perform tests.same('it opens the request', tests.act('anon', format('select public.check_request_code(%L, %L)', a ->> 'request_number', substring((pg_temp.texts(n))[1] from '[0-9]{6}'))) ->> 'ok', 'true');
  perform tests.same('without consent', tests.act('anon', format('select public.send_request_code(%L, ''sms'')', b ->> 'request_number')), '{"sent": true}'::jsonb);
  perform tests.same('it is mailed', tests.mails('quiet@tests.example', '%' || (b ->> 'request_number') || '%'), 2);

  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letter.'')', a ->> 'id'));
  perform tests.same('something is missing', (pg_temp.texts(n))[1] like '%' || (a ->> 'request_number') || '%/open-request?number=' || (a ->> 'request_number') || '&lang=fr %STOP%', true);
  perform tests.same('and nothing of what', (pg_temp.texts(n))[1] ~ 'letter', false);
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''No money'')', a ->> 'id'));
  perform tests.same('a decision', array_length(pg_temp.texts(n), 1), 3);
  perform tests.same('that is not told over the shoulder', (pg_temp.texts(n))[1] ~* 'No money|refus|approuv', false);
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''No money'')', b ->> 'id'));
  perform tests.same('texts to whoever did not consent', pg_temp.texts('+12075550199'), '{}');
end $$;

-- An account: consent in the form, withdrawal in the profile, another number.
do $$
declare a jsonb; n constant text := '+12075550177'; profile constant text := '"first_name": "Ada", "last_name": "Love", "birthday": "2000-02-29", "country": "France", "id_type": "Passport", "id_number": "P1", "phone": "207 555 0177"';
begin
  a := tests.act('alice', 'select public.submit_request(' || tests.answers('{"phone": "207 555 0177", "sms_consent": true}') || ')');
  perform tests.same('seen in the profile', tests.act('alice', 'select public.my_profile()') ->> 'sms_consent', 'true');
  perform tests.act('alice', format('select public.save_profile(%L)', '{' || profile || '}'));
  perform tests.same('a profile saved by an older page', tests.act('alice', 'select public.my_profile()') ->> 'sms_consent', 'true');
  perform tests.act('alice', format('select public.save_profile(%L)', '{' || profile || ', "sms_consent": false}'));
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letter.'')', a ->> 'id'));
  perform tests.same('taken back', pg_temp.texts(n), '{}');
  perform tests.act('alice', format('select public.save_profile(%L)', '{' || profile || ', "sms_consent": true}'));
  perform tests.same('given again', (select r.sms_consent from public.requests r where r.id = a ->> 'id'), true);
  perform tests.same('for this number alone', (select count(*)::int from public.requests r where r.sms_consent and r.user_id = tests.id('alice')), 1);
  -- The consent was for the number beside it.
  perform tests.act('alice', format('select public.correct_request(%L, ''{"phone": "207 555 0178"}'')', a ->> 'id'));
  perform tests.same('another number', (select r.sms_consent from public.requests r where r.id = a ->> 'id'), false);
  perform tests.act('alice', format('select public.correct_request(%L, ''{"sms_consent": true, "phone": "207 555 0177"}'')', a ->> 'id'));
  perform tests.act('alice', format('select public.correct_request(%L, ''{"sms_consent": true, "phone": "207 555 0179"}'')', a ->> 'id'));
  perform tests.same('said anew beside another number', (select r.sms_consent from public.requests r where r.id = a ->> 'id'), true);
  perform tests.act('alice', format('select public.correct_request(%L, ''{"sms_consent": true, "phone": "12345"}'')', a ->> 'id'));
  perform tests.same('no texts to what is no number', (select r.sms_consent from public.requests r where r.id = a ->> 'id'), false);
  perform tests.act('alice', format('select public.correct_request(%L, ''{"sms_consent": true, "phone": "207 555 0177"}'')', a ->> 'id'));
end $$;

-- STOP: queued messages are removed, none is queued, and the consent is shown as off. START does not restore the
-- consent.
do $$
declare n constant text := '+12075550177'; mine text := (select r.id from public.requests r where r.sms_consent and private.sms_number(r.phone) = n);
begin
  perform tests.act('alice', format('select public.answer_request_info(%L, ''here'')', mine));
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', ''Please send the letter.'')', mine));
  perform tests.same('one waits', array_length(pg_temp.texts(n), 1), 1);
  perform ferrobase.stop_sms(n, true);
  perform tests.same('none waits', pg_temp.texts(n), '{}');
  perform tests.same('the request', (select r.sms_consent from public.requests r where r.id = mine), false);
  perform tests.same('the profile', tests.act('alice', 'select public.my_profile()') ->> 'sms_consent', 'false');
  perform tests.same('and when', tests.act('alice', 'select public.my_profile()') ->> 'sms_stopped_at' is not null, true);
  perform tests.act('alice', 'select public.save_profile(''{"bio": "Typed before the STOP"}'')');
  perform tests.same('a profile saved afterwards', tests.act('alice', 'select public.my_profile()') ->> 'sms_consent', 'false');
  perform ferrobase.stop_sms(n, false);
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''No money'')', mine));
  perform tests.same('after START without consent', pg_temp.texts(n), '{}');
  perform tests.run('alice', format('update public.profiles set sms_consent = true where id = %L', tests.id('alice')));
  perform tests.same('a new consent forgets the STOP', (select p.sms_stopped_at is null from public.profiles p where p.id = tests.id('alice')), true);
end $$;

-- A stranger cannot cause unlimited texts: five codes per day and network, then codes are mailed.
do $$
declare a jsonb; n constant text := '+12075550144';
begin
  update private.app_settings set value = '1' where key = 'rate_limit_factor';
  delete from private.rate_limits;
  perform set_config('ferrobase.client_address', '203.0.113.9', true);
  for i in 1 .. 2 loop
    a := tests.act('anon', 'select public.submit_request(' || tests.answers('{"email": "far@tests.example", "phone": "207 555 0144", "sms_consent": true}') || ')');
    for j in 1 .. 4 loop perform tests.act('anon', format('select public.send_request_code(%L, ''sms'')', a ->> 'request_number')); end loop;
  end loop;
  perform tests.same('five texts', array_length(pg_temp.texts(n), 1), 5);
  perform tests.same('then mails', tests.mails('far@tests.example', '% opens %'), 3);
  update _supavisor.sms_rules set per_number = 5;
  perform set_config('ferrobase.client_address', '203.0.113.10', true);
  perform tests.act('anon', format('select public.send_request_code(%L, ''sms'')', a ->> 'request_number'));
  perform tests.same('the number has its limit too', array_length(pg_temp.texts(n), 1), 5);
end $$;

select tests.count() as checks;
rollback;
