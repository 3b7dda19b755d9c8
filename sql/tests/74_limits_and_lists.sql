-- Limits per network, limits of recorded donations, the lists of an address, and the order of waiting mails.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1' where key = 'rate_limit_factor';

-- A limit per caller is one per network: an IPv6 customer has a whole /64.
do $$
begin
  for i in 1 .. 10 loop
    perform set_config('ferrobase.client_address', '2001:db8:1:2::' || i, true);
    perform tests.act('anon', format('select public.subscribe_newsletter(%L)', 'reader' || i || '@tests.example'));
  end loop;
  perform set_config('ferrobase.client_address', '2001:db8:1:2:ffff::1', true);
  perform tests.check('anon', 'select public.subscribe_newsletter(''reader11@tests.example'')', 'hint:rate_limited');
  perform set_config('ferrobase.client_address', '2001:db8:1:3::1', true);
  perform tests.check('anon', 'select public.subscribe_newsletter(''reader11@tests.example'')', 'rows=1');
  perform set_config('ferrobase.client_address', '', true);
  perform tests.same('functions that count single addresses', (select coalesce(string_agg(p.proname, ', '), '') from pg_proc p
    where p.prosrc ~ 'client_address\(\)' and p.proname <> 'client_network'), '');
end $$;

-- Whoever has not proved an address neither sees nor ends what it subscribed to, and an unsubscription outlives the account.
do $$
declare who text;
begin
  perform tests.account('claimed', 'requester');
  perform tests.account('proved', 'requester');
  update private.account_addresses set proved_at = now() where user_id = tests.id('proved');
  foreach who in array array['claimed', 'proved'] loop
    insert into private.subscriptions (list, email, confirmed_at, unsubscribed_at) values
      ('newsletter', who || '@tests.example', now(), null), ('x', who || '@tests.example', null, now());
  end loop;
  perform tests.same('the lists of an address that is not proved', tests.act('claimed', 'select public.my_data()') -> 'newsletters', '[]'::jsonb);
  perform tests.same('and of one that is', jsonb_array_length(tests.act('proved', 'select public.my_data()') -> 'newsletters'), 2);
  foreach who in array array['claimed', 'proved'] loop
    perform tests.act(who, format('select public.close_account(%L)', who || '@tests.example'));
  end loop;
  perform tests.same('lists after the accounts are closed', (select string_agg(split_part(s.email, '@', 1) || ' ' || s.list, ', ' order by s.email, s.list)
    from private.subscriptions s where s.email in ('claimed@tests.example', 'proved@tests.example')), 'claimed newsletter, claimed x, proved x');
end $$;

-- Donations that staff record: each shows in the donor's account, so there are limits.
do $$
begin
  for i in 1 .. 30 loop
    perform tests.act('manager', 'select public.record_donation(''x'', 5, ''Giver'', ''Donor@tests.example'')');
  end loop;
  perform tests.check('manager', 'select public.record_donation(''x'', 5, ''Giver'', ''donor@tests.example'')', 'hint:rate_limited');
  perform tests.check('manager_y', 'select public.record_donation(''y'', 5, ''Giver'', ''donor@tests.example'')', 'hint:rate_limited');
  perform tests.check('manager', 'select public.record_donation(''x'', 5, ''Giver'', ''other@tests.example'')', 'rows=1');
  perform tests.check('manager', 'select public.record_donation(''x'', 5, ''Giver'')', 'rows=1');
  update private.rate_limits r set hits = 300 where r.key = 'donation:x';
  perform tests.check('manager', 'select public.record_donation(''x'', 5, ''Giver'')', 'hint:rate_limited');
  perform tests.check('manager_y', 'select public.record_donation(''y'', 5, ''Giver'')', 'rows=1');
end $$;

-- Waiting mails go out in batches, the oldest message first, and an organization at its limit keeps nobody waiting.
create function pg_temp.round() returns text language plpgsql as $$
declare again boolean := private.mail_waiting_donors();
begin
  return again || (select string_agg(' ' || m.id || ':' || m.mailed_count, '' order by m.id) from public.donor_messages m where m.id like 'w-%');
end $$;

do $$
begin
  update public.donor_message_recipients set mailed_at = now();
  update public.nonprofits set created_at = now() - interval '2 days';
  insert into public.donor_messages (id, nonprofit_id, subject, message, created_at) values
    ('w-1', 'x', 'Old', 'Thank you for giving', now() - interval '3 hours'), ('w-2', 'y', 'Newer', 'Thank you for giving', now() - interval '2 hours');
  insert into public.donor_message_recipients (message_id, donor_email)
  select m, m || i || '@tests.example' from unnest(array['w-1', 'w-2']) m, generate_series(1, 250) i;
  insert into private.rate_limits (key, window_start, hits)
  values ('donor-mails:x', to_timestamp(floor(extract(epoch from now()) / 86400) * 86400), 5000);
  perform tests.same('the other organization goes on', pg_temp.round(), 'true w-1:0 w-2:200');
  update private.rate_limits r set hits = 4990 where r.key = 'donor-mails:x';
  perform tests.same('the oldest is first', pg_temp.round(), 'true w-1:10 w-2:200');
  delete from private.rate_limits r where r.key = 'donor-mails:x';
  perform tests.same('a batch of it', pg_temp.round(), 'true w-1:210 w-2:200');
  perform tests.same('the rest', pg_temp.round(), 'true w-1:250 w-2:200');
  perform tests.same('then the newer one', pg_temp.round(), 'true w-1:250 w-2:250');
  perform tests.same('nothing is left', pg_temp.round(), 'false w-1:250 w-2:250');
end $$;

select tests.count() as checks;
rollback;
