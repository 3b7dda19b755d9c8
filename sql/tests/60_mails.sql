-- Text that people typed is harmless in mails to others: it becomes no link and no separate paragraph.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

do $$
declare r record;
begin
  for r in select * from (values
    ('evil.com', 'evil .com'), ('See https://evil.com/a.b?c=d now', 'See https: //evil .com/a.b?c=d now'), ('www.evil.co.uk', 'www .evil .co .uk'),
    ('a.b@evil.com', 'a.b@evil .com'), ('http://10.0.0.1/x', 'http: //10.0.0.1/x'), ('EVIL.COM', 'EVIL .COM'), ('пример.рф', 'пример .рф'), ('evil。com', 'evil 。com'),
    ('evil.png.com', 'evil .png .com'), ('evil.doc/x', 'evil .doc/x'),
    ('$99.50 by 3.5.2026, e.g. rent.', '$99.50 by 3.5.2026, e.g. rent.'), ('Send payslip.pdf and letter.docx.', 'Send payslip.pdf and letter.docx.'),
    ('St. Mary''s, Inc.', 'St. Mary''s, Inc.'), (null, null)) t (given, expected)
  loop
    perform tests.same(coalesce(r.given, 'null'), private.unlinked(r.given), r.expected);
  end loop;
  perform tests.same('a name in a greeting', private.mail_name(E'Ada\r\n\r\nYour account is blocked', 'there'), 'Ada Your account is blocked');
  perform tests.same('a link for a name', private.mail_name('Ada https://evil.com', 'there'), 'there');
end $$;

-- An organization, a category and staff with links in their names, and a request with a stranger's address.
do $$
declare sent jsonb; t text; a constant text := 'victim@tests.example';
begin
  update public.nonprofits set name = E'Win at https://evil.com\n\nNow' where id = 'x';
  update public.categories set name = 'Prize www.evil.com' where id = 't-cat-x';
  sent := tests.act('anon', 'select public.submit_request(' || tests.answers('{"category_id": "t-cat-x", "email": "victim@tests.example", "first_name": "Ada evil.com"}') || ')');
  t := tests.mail_text(a, '%we have your request%');
  perform tests.same('greeting', t like E'%\n\nHello Ada evil .com,\n\n%', true);
  perform tests.same('category and organization', t like '%Your request for Prize www .evil .com went to Win at https: //evil .com Now.%', true);
  perform tests.act('manager', format('select public.request_more_info(%L, ''x'', %L)', sent ->> 'id', E'Type your password at evil.com.\nOr send payslip.pdf'));
  t := tests.mail_text(a, '%one more thing%');
  perform tests.same('question', t like E'%"Type your password at evil .com.\nOr send payslip.pdf"%', true);
  perform tests.act('manager', format('select public.deny_request(%L, ''x'', ''See http://evil.com'')', sent ->> 'id'));
  t := tests.mail_text(a, '%was declined%');
  perform tests.same('reason', t like '%"See http: //evil .com"%', true);
  -- The page shows the person the text as it was written.
  perform tests.same('the reason as written', (select denial_reason from public.requests where id = sent ->> 'id'), 'See http://evil.com');
  perform tests.act('anon', 'select public.pledge_donation(jsonb_build_object(''nonprofit_id'', ''x'', ''amount'', ''5'', ''email'', ''victim@tests.example'', ''key'', gen_random_uuid()))');
  perform tests.same('subject', tests.mails(a, 'Thank you for your pledge to Win at https: //evil .com Now'), 1);
  -- The only URLs in the mails are the product's own: its button and the unsubscribe line.
  perform tests.same('links', (select array_agg(distinct x[1]) from _supavisor.outbox o cross join lateral regexp_matches(
      replace(o.body_text, rtrim(private.setting('site_url'), '/'), ''), '(https?://|www\.|[a-z0-9-]+\.com)', 'g') x where to_jsonb(o)::text like '%' || a || '%'), null::text[]);
  -- A message to donors keeps the links of its author, whose address is proved.
  perform tests.act('manager', 'select public.send_donor_message(''x'', ''Our year'', ''Read it at https://harbor.example/2026'')');
  perform tests.same('donors', tests.mail_text('donor@tests.example', 'Our year') like '%Read it at https://harbor.example/2026%', true);
end $$;

select tests.count() as checks;
rollback;
