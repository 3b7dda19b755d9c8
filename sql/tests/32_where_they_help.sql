-- What nonprofits help with and where: who sets it, what is stored, and its effect on the directory.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare r record; seen jsonb := '{"helps_with": [], "service_area": []}'; changes jsonb := '{"helps_with": ["t-cat"], "service_area": [" Portland,  ME ", "", "Portland,  ME"]}';
begin
  perform tests.matrix(format('select public.save_organization(''x'', %L, %L)', changes, seen),
    '{"admin": "rows=1", "manager": "hint:role_not_allowed", "employee": "hint:role_not_allowed", "volunteer": "hint:role_not_allowed"}', 'hint:not_a_member');
  perform tests.matrix('update public.nonprofits set helps_with = array[''t-cat''], service_area = array[''Maine''] where id = ''x''', '{"admin": "rows=1"}');

  -- Stored: kinds that the wizard offers, and places once and trimmed.
  perform tests.run('admin', format('select public.save_organization(''x'', %L, %L)', changes || '{"helps_with": ["t-cat", "t-cat-x", "nope"]}', seen));
  perform tests.same('kinds', (select helps_with from public.nonprofits where id = 'x'), array['t-cat']);
  perform tests.same('places', (select cardinality(service_area) from public.nonprofits where id = 'x'), 1);
  perform tests.check('admin', format('select public.save_organization(''x'', %L, %L)', '{"service_area": ["Maine"]}', seen), 'hint:changed_meanwhile');

  -- Which places count as the same.
  for r in select * from (values ('Portland, ME', 'portland', true), ('Portland, ME', 'Portland,  me', true), ('Portland, ME', 'Portland, OR', false), ('ME', 'Portland, ME', true),
    ('Maine', 'Portland, Maine', true), ('Portland', 'South Portland', false), ('Portland, ME', '', false), ('', 'Portland', false), (null, 'Portland', false), ('Portland', null, false)) t (area, place, same)
  loop
    perform tests.same(coalesce(r.area, 'null') || ' / ' || coalesce(r.place, 'null'), private.covers(r.area, r.place), r.same);
  end loop;

  -- Without own places, a nonprofit helps where it is located.
  update public.nonprofits set location = 'Lewiston, ME' where id = 'y';
  perform tests.same('asked for food in Portland', tests.act('anon', $q$select string_agg(concat_ws(' ', n.id, n.helps, n.near), ', ' order by n.helps desc, n.near desc)
    from public.nonprofits_for('t-cat', 'Portland') n where n.id in ('x', 'y')$q$) #>> '{}', 'x t t, y f f');
  perform tests.same('in Lewiston', tests.act('anon', $q$select string_agg(n.id, ' ' order by n.near desc) from public.nonprofits_for(null, 'Lewiston, ME') n where n.id in ('x', 'y')$q$) #>> '{}', 'y x');
  perform tests.same('asked for nothing', tests.act('alice', 'select bool_or(n.helps or n.near) from public.nonprofits_for() n') #>> '{}', 'false');
  update public.nonprofits set status = 'closed' where id = 'y';
  perform tests.same('closed', (select count(*)::int from public.nonprofits_for('t-cat', 'Lewiston, ME') where id = 'y'), 0);
end $$;

select tests.count() as checks;
rollback;
