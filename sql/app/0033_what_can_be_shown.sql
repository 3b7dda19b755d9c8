-- Values that a page cannot show, or that show something else than they are.

-- A donation of '-infinity' was taken, and no page of its donor could be drawn: JavaScript has no such date.
update public.donations set received_at = greatest(received_at, timestamptz '1900-01-01'), pledged_at = greatest(pledged_at, timestamptz '1900-01-01')
where least(received_at, pledged_at) < timestamptz '1900-01-01';
update public.budget_transactions set date = timestamptz '1900-01-01' where date < timestamptz '1900-01-01';
alter table public.donations add constraint donations_dates
  check (received_at >= timestamptz '1900-01-01' and pledged_at >= timestamptz '1900-01-01' and pledged_at < 'infinity');

create or replace function public.record_donation(nonprofit_id text, amount numeric, donor_name text, donor_email text default null,
  received_at timestamptz default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := record_donation.nonprofit_id; who text := private.clean(record_donation.donor_name); mail text := private.clean(record_donation.donor_email);
  d public.donations;
begin
  perform private.require_member(np, array['admin', 'manager']);
  perform private.require_amount(record_donation.amount);
  if who is null or length(who) > 200 then
    perform private.fail(422, 'validation_failed', 'Please enter the donor''s name', '{"fields": {"donor_name": "Please enter the donor''s name"}}');
  end if;
  if mail is not null and not private.valid_email(mail) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"donor_email": "Please enter a valid email address"}}');
  end if;
  if record_donation.received_at < timestamptz '1900-01-01' then
    perform private.fail_fields('Please enter a valid date', '{"received_at": "Please enter a valid date"}');
  end if;
  if record_donation.received_at > now() + interval '1 day' then
    perform private.fail(422, 'validation_failed', 'The date cannot be in the future', '{"fields": {"received_at": "The date cannot be in the future"}}');
  end if;
  if record_donation.key is not null then
    perform pg_advisory_xact_lock(hashtextextended('donation:' || record_donation.key, 0));
    select * into d from public.donations x where x.pledge_key = record_donation.key and x.nonprofit_id = np;
    if found then return jsonb_build_object('donation_id', d.id, 'repeated', true); end if;
  end if;
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, received_at, pledged_at, recorded_by, pledge_key)
  values (np, (select a.user_id from private.account_addresses a where a.email = lower(mail) and a.proved_at is not null limit 1), who, mail,
    record_donation.amount, 'received', coalesce(record_donation.received_at, now()), coalesce(record_donation.received_at, now()), auth.uid(), record_donation.key)
  returning * into d;
  perform private.book_donation(d);
  return jsonb_build_object('donation_id', d.id, 'repeated', false);
end $$;

-- NaN is above every number: a second approval 'above NaN' never came.
update public.nonprofit_settings set second_approval_above = null where second_approval_above = 'NaN';
alter table public.nonprofit_settings drop constraint nonprofit_settings_second_approval,
  add constraint nonprofit_settings_second_approval check (second_approval_above >= 0 and second_approval_above <> 'NaN');

-- Directions that turn the text around them, and characters without a width: with them a name reads as another's. The joiners
-- U+200C and U+200D and the marks U+200E and U+200F stay; languages are written with them.
create or replace function private.clean(p text) returns text
language sql immutable set search_path = '' as $$
  select nullif(btrim(regexp_replace(p, '[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]', '', 'g'), E' \t\r\n\u00a0'), '')
$$;

-- For names that clients write into the table themselves; tg_argv are the columns.
create function private.clean_names() returns trigger
language plpgsql security definer set search_path = '' as $$
declare given jsonb := to_jsonb(new); changed jsonb := '{}'; name text;
begin
  foreach name in array tg_argv loop
    if given ->> name ~ '[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]' then
      changed := changed || jsonb_build_object(name, private.clean(given ->> name));
    end if;
  end loop;
  if changed <> '{}' then new := jsonb_populate_record(new, changed); end if;
  return new;
end $$;
revoke all on function private.clean_names() from public, anon, authenticated, service_role;
-- Before the guards, which triggers in the order of their names see to.
create trigger clean_names before insert or update of name on public.nonprofits
  for each row execute function private.clean_names('name');
create trigger clean_names before insert or update of full_name, first_name, middle_name, last_name on public.profiles
  for each row execute function private.clean_names('full_name', 'first_name', 'middle_name', 'last_name');
create trigger clean_names before insert or update of title, first_name, last_name, city on public.requests
  for each row execute function private.clean_names('title', 'first_name', 'last_name', 'city');

notify pgrst, 'reload schema';
