-- Hourly jobs, see ferrobase.hourly.

-- Deletes expired rows: counters of limits, codes, proofs. Locked rows wait for the next hour.
create or replace function private.sweep() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from private.rate_limits x using (select r.key, r.window_start from private.rate_limits r
    where r.window_start < now() - interval '2 days' for update skip locked) old where (x.key, x.window_start) = (old.key, old.window_start);
  delete from private.address_codes x using (select c.id from private.address_codes c
    where c.expires_at < now() - interval '2 days' for update skip locked) old where x.id = old.id;
  delete from private.address_proofs x using (select p.token_hash from private.address_proofs p
    where p.expires_at < now() for update skip locked) old where x.token_hash = old.token_hash;
  delete from private.sent_contents c where c.sent_at < now() - interval '90 days';
  delete from private.request_codes c where c.expires_at < now() - interval '2 days';
  delete from private.request_access a where a.expires_at < now();
  perform private.add_up_tally();
end $$;

-- Sums up rows added since the last run; rows added concurrently stay for the next.
create or replace function private.add_up_tally() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  with taken as (delete from private.incoming_tally returning *)
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select t.nonprofit_id, t.status, t.category, t.due, sum(t.change) from taken t group by 1, 2, 3, 4 having sum(t.change) <> 0;
  with taken as (delete from private.budget_tally returning *)
  insert into private.budget_tally (nonprofit_id, type, category, change)
  select t.nonprofit_id, t.type, t.category, sum(t.change) from taken t group by 1, 2, 3 having sum(t.change) <> 0;
end $$;

-- Deletes at most p_most rows of each kind, so that others do not wait.
create or replace function private.retain(p_most int default 500) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare ids text[];
begin
  -- drafts that nobody has touched for a year
  ids := array(select r.id from public.requests r where r.status = 'draft' and r.updated_at < now() - interval '1 year' order by r.updated_at limit p_most for update skip locked);
  perform private.remove_documents(ids);
  delete from public.requests r where r.id = any (ids);
  -- requests without an account, or whose account is closed, that brought no money: a year after their end
  ids := array(select r.id from public.requests r where r.user_id is null and r.status in ('declined', 'withdrawn') and r.decided_at < now() - interval '1 year'
    order by r.decided_at limit p_most for update skip locked);
  perform private.remove_documents(ids);
  delete from public.requests r where r.id = any (ids);
  -- those that did: personal data is removed after two years, the books stay
  ids := array(select r.id from public.requests r where r.user_id is null and r.status = 'approved' and r.decided_at < now() - interval '2 years'
    and not private.is_erased(r.email) order by r.decided_at limit p_most for update skip locked);
  perform private.erase_people(ids);
  perform private.retain_unanswered(p_most);
  delete from public.notifications n where n.id in (select x.id from public.notifications x where x.read and x.date < now() - interval '1 year' limit p_most for update skip locked);
end $$;

-- Requests without an account that nothing has happened to for eleven months: tells the person and the staff who could act, and deletes the
-- request thirty days later. It stays for another eleven months if anything happens to it or if the person opens it with a code.
create or replace function private.retain_unanswered(p_most int) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  quiet constant interval := '11 months';
  notice constant int := 30;
  r public.requests; part record; ids text[];
begin
  -- of those announced before: something happened
  delete from private.unanswered_requests u using (select y.request_id from private.unanswered_requests y join public.requests x on x.id = y.request_id
    where x.user_id is not null or x.status not in ('pending', 'processing') or x.updated_at > y.told_at for update of y skip locked) moved
  where u.request_id = moved.request_id;

  -- of those announced before: nothing happened
  ids := array(select x.id from private.unanswered_requests u join public.requests x on x.id = u.request_id
    where u.ends_on <= current_date and u.kept_at is null and x.updated_at <= u.told_at and x.user_id is null and x.status in ('pending', 'processing')
    order by u.told_at limit p_most for update of u, x skip locked);
  for r in select * from public.requests x where x.id = any (ids) loop
    perform private.mail_about(r, 'unansweredEnded', '{}', jsonb_build_object('link', private.site_link('/submit-request')));
  end loop;
  perform private.remove_documents(ids);
  delete from public.requests x where x.id = any (ids);

  for r in select * from public.requests x
    where x.user_id is null and x.status in ('pending', 'processing') and x.updated_at < now() - quiet
      and not exists (select 1 from private.unanswered_requests u where u.request_id = x.id and coalesce(u.kept_at, now()) > now() - quiet)
    order by x.updated_at limit p_most for update skip locked
  loop
    insert into private.unanswered_requests (request_id, ends_on) values (r.id, current_date + notice)
      on conflict (request_id) do update set told_at = now(), ends_on = excluded.ends_on, kept_at = null;
    perform private.mail_about(r, 'unanswered', jsonb_build_object('ends', private.day(private.language_of(r), current_date + notice)));
    for part in select p.nonprofit_id from public.request_nonprofits p where p.request_id = r.id and p.state in ('open', 'claimed') loop
      perform private.notify_staff(part.nonprofit_id, 'warning', 'unanswered', jsonb_build_object('number', r.request_number, 'date', current_date + notice),
        '/nonprofit-request/' || r.id, r.id);
    end loop;
  end loop;
end $$;
