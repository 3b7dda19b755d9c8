-- Values that a page could not display, or that would look like something else, are refused or cleaned.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare d text; n jsonb; draft text;
begin
  foreach d in array array['-infinity', '4000-01-01 BC', '1899-12-31'] loop
    perform tests.tells('admin', format('select public.record_donation(''x'', 5, ''Ada'', received_at => %L)', d), 'received_at', 'Please enter a valid date');
  end loop;
  perform tests.tells('admin', 'select public.record_donation(''x'', 5, ''Ada'', received_at => ''infinity'')', 'received_at', 'The date cannot be in the future');
  perform tests.check('service', $q$insert into public.donations (nonprofit_id, amount, status, received_at) values ('x', 5, 'received', '-infinity')$q$, 'state:23514');
  perform tests.check('service', $q$insert into public.donations (nonprofit_id, amount, pledged_at) values ('x', 5, 'infinity')$q$, 'state:23514');
  n := tests.act('admin', 'select public.record_donation(''x'', 5, ''Ada'', received_at => ''1900-01-02'')');
  perform tests.same('an old donation', n ->> 'repeated', 'false');

  perform tests.check('admin', 'update public.nonprofit_settings set second_approval_above = ''NaN'' where nonprofit_id = ''x''', 'state:23514');
  perform tests.check('admin', 'update public.nonprofit_settings set second_approval_above = 0 where nonprofit_id = ''x''', 'rows=1');

  -- Names: direction overrides and invisible characters are removed; characters that languages need stay.
  perform tests.same('turned', private.clean(U&' Harbor\202E\200B Relief\2066\FEFF '), 'Harbor Relief');
  perform tests.same('joined', private.clean(U&'\0645\06CC\200C\062E\0648\0627\0647\0645'), U&'\0645\06CC\200C\062E\0648\0627\0647\0645');
  perform tests.same('nothing to see', private.clean(U&'\200B\2060'), null);
  perform tests.run('admin', $q$update public.nonprofits set name = U&'Harbor\202E Relief\200B' where id = 'x'$q$);
  perform tests.same('an organization', (select name from public.nonprofits where id = 'x'), 'Harbor Relief');
  perform tests.check('admin', $q$update public.nonprofits set name = U&'\200B\200B' where id = 'x'$q$, 'hint:validation_failed');
  perform tests.run('alice', $q$update public.profiles set full_name = U&'Ali\202Ece' where id = auth.uid()$q$);
  perform tests.same('a person', (select full_name from public.profiles where id = tests.id('alice')), 'Alice');
  n := tests.act('alice', 'select public.save_draft(''{}'')');
  draft := n ->> 'id';
  perform tests.run('alice', format($q$update public.requests set first_name = U&'Ali\2067ce', title = U&'Rent\200B' where id = %L$q$, draft));
  perform tests.same('a request', (select first_name || ' ' || title from public.requests where id = draft), 'Alice Rent');
end $$;

select tests.count() as checks;
rollback;
