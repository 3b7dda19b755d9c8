-- Two things at once: a request never goes to an organization that is closing, and a donation recorded twice is one.

-- Holds each chosen organization open until the request is in; closing waits for that, or comes first.
create function private.hold_organization() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  perform 1 from public.nonprofits n where n.id = new.nonprofit_id and n.status = 'active' for share;
  if not found then
    perform private.fail(422, 'validation_failed', 'Please check the marked fields.',
      '{"fields": {"nonprofits": "One of the chosen nonprofits is no longer available. Please choose another."}}');
  end if;
  return new;
end $$;
create trigger hold_organization before insert on public.request_nonprofits
  for each row when (new.state = 'open') execute function private.hold_organization();

-- Closes the organization: nothing is lost, its open requests go back to the others or end with a clear reason.
create or replace function public.close_organization(nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := close_organization.nonprofit_id; id_ text; r public.requests; p public.request_nonprofits; n int := 0;
begin
  perform private.require_member(np, array['admin']);
  perform 1 from public.nonprofits x where x.id = np for update;
  perform private.require_member(np, array['admin']);  -- it may have closed while we waited
  for id_ in select x.request_id from public.request_nonprofits x where x.nonprofit_id = np and x.state in ('open', 'claimed', 'taken') order by 1 loop
    select * into r from public.requests x where x.id = id_ for update;
    select * into p from public.request_nonprofits x where x.request_id = id_ and x.nonprofit_id = np for update;
    if r.status in ('pending', 'processing') and p.state in ('open', 'claimed') then
      perform private.end_part(r, p, 'closed', 'The organization closed before it could decide.', 'organization_closed');
      n := n + 1;
    elsif r.status in ('pending', 'processing') and p.state = 'taken' then
      update public.request_nonprofits x set state = 'closed', acted_at = now() where x.request_id = id_ and x.nonprofit_id = np;
    end if;
  end loop;
  update public.nonprofits x set status = 'closed', closed_at = now() where x.id = np;
  update public.profiles x set selected_nonprofit_id = null where x.selected_nonprofit_id = np;
  return jsonb_build_object('status', 'closed', 'requests_released', n);
end $$;

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

revoke all on function private.hold_organization() from public, anon, authenticated, service_role;
