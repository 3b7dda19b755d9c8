-- Donors: pledges, the donor's dashboard, messages from organizations and answers to them. Newsletter and unsubscribing.

create function public.pledge_donation(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := auth.uid(); k uuid; a numeric; mail text := private.clean(input ->> 'email'); n public.nonprofits; d public.donations; errors jsonb := '{}';
begin
  begin k := (input ->> 'key')::uuid; exception when invalid_text_representation then k := null; end;
  begin a := replace(replace(input ->> 'amount', '$', ''), ',', '')::numeric; exception when data_exception then a := null; end;
  mail := coalesce(mail, (select p.email from public.profiles p where p.id = uid));
  if k is null then errors := errors || '{"key": "A key is required"}'; end if;
  if not private.valid_email(mail) then errors := errors || '{"email": "Please enter a valid email address"}'; end if;
  if a is null then errors := errors || '{"amount": "Amount must be a number"}'; end if;
  if private.clean(input ->> 'nonprofit_id') is null then errors := errors || '{"nonprofit_id": "Please select a nonprofit"}'; end if;
  if errors <> '{}' then perform private.fail(422, 'validation_failed', 'Please check the marked fields.', jsonb_build_object('fields', errors)); end if;
  perform private.require_amount(a);
  select * into n from public.nonprofits x where x.id = input ->> 'nonprofit_id' and x.status = 'active';
  if not found then perform private.fail(404, 'organization_not_found', 'This nonprofit is not available.'); end if;
  perform pg_advisory_xact_lock(hashtextextended('pledge:' || k, 0));
  select * into d from public.donations x where x.pledge_key = k;
  if found then
    return jsonb_build_object('donation_id', d.id, 'nonprofit', (select x.name from public.nonprofits x where x.id = d.nonprofit_id), 'amount', d.amount, 'repeated', true);
  end if;
  perform private.require_rate('pledge:' || coalesce(uid::text, private.client_address()), 10, interval '1 hour');
  perform private.require_rate('pledge-for:' || lower(mail), 10, interval '1 day');  -- each sends that address a mail
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, pledge_key)
  values (n.id, uid, coalesce(left(private.clean(input ->> 'name'), 200), (select p.full_name from public.profiles p where p.id = uid), ''), mail, a, k)
  returning * into d;
  perform private.notify_staff(n.id, 'info', 'New pledge: ' || private.amount_text(a), coalesce(nullif(d.donor_name, ''), 'A donor') || ' wants to give. Mark it received when the money is here.', '/nonprofit-budget', null, array['admin', 'manager']);
  perform private.mail(mail, 'Thank you for your pledge to ' || n.name, jsonb_build_object(
    'heading', 'Thank you for your pledge',
    'paragraphs', jsonb_build_array('You want to give ' || private.amount_text(a) || ' to ' || n.name || '.',
      n.name || ' writes to you about how to send it. We take no card details.'),
    'why', 'You get this mail because someone pledged a donation with this address on AidBridge.', 'unsubscribe', private.unsubscribe_link(n.id, mail)));
  return jsonb_build_object('donation_id', d.id, 'nonprofit', n.name, 'amount', a, 'repeated', false);
end $$;

create view public.my_donor_messages with (security_barrier = true) as
  select m.id, m.nonprofit_id, n.name as nonprofit_name, m.subject, m.message, m.created_at as date, r.read_at is null as unread,
    coalesce((select jsonb_agg(jsonb_build_object('message', y.message, 'date', y.created_at) order by y.created_at)
      from public.donor_message_replies y where y.message_id = m.id and y.donor_user_id = r.donor_user_id), '[]'::jsonb) as replies
  from public.donor_message_recipients r
  join public.donor_messages m on m.id = r.message_id
  join public.nonprofits n on n.id = m.nonprofit_id
  where r.donor_user_id = (select auth.uid());

create view public.donor_inbox with (security_invoker = true) as
  select r.id, r.nonprofit_id, r.message_id, r.from_name as "from", r.subject, left(regexp_replace(r.message, '\s+', ' ', 'g'), 140) as preview,
    r.message, r.created_at as date, r.read_at is null as unread
  from public.donor_message_replies r
  where r.nonprofit_id in (select private.my_managed_organizations());

-- Totals only, never a person. 'People impacted' are the different people whose requests an organization approved since
-- the caller's first received gift to it; 'paid for' shares each gift by what the organization approved since that gift.
create function public.donor_dashboard() returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare uid uuid := private.require_user();
begin
  return (
    with gifts as (select d.id, d.nonprofit_id, d.amount, d.received_at from public.donations d where d.donor_user_id = uid and d.status = 'received'),
    since as (select g.nonprofit_id, min(g.received_at) as at from gifts g group by 1),
    share as (
      select g.id, g.amount, t.category, sum(t.amount) as spent, sum(sum(t.amount)) over (partition by g.id) as total
      from gifts g join public.budget_transactions t on t.nonprofit_id = g.nonprofit_id and t.type = 'Approval' and t.date >= g.received_at
      group by g.id, g.amount, t.category),
    paid_for as (select s.category, round(sum(s.amount * s.spent / s.total), 2) as amount from share s group by 1)
    select jsonb_build_object(
      'total_donated', coalesce((select sum(g.amount) from gifts g), 0),
      'people_impacted', (select count(distinct coalesce(r.user_id::text, lower(r.email))) from since s
        join public.requests r on r.claimed_by = s.nonprofit_id and r.status = 'approved' and r.decided_at >= s.at),
      'nonprofits_supported', (select count(*) from since),
      'donations', coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'nonprofit_id', n.id, 'nonprofit_name', n.name, 'amount', d.amount, 'status', d.status,
          'pledged_at', d.pledged_at, 'received_at', d.received_at) order by coalesce(d.received_at, d.pledged_at) desc)
        from public.donations d join public.nonprofits n on n.id = d.nonprofit_id where d.donor_user_id = uid), '[]'::jsonb),
      'paid_for', coalesce((select jsonb_agg(jsonb_build_object('category', coalesce(p.category, 'Other'), 'amount', p.amount) order by p.amount desc) from paid_for p), '[]'::jsonb),
      'messages', coalesce((select jsonb_agg(to_jsonb(m) order by m.date desc) from (select * from public.my_donor_messages order by date desc limit 5) m), '[]'::jsonb),
      'unread_messages', (select count(*) from public.donor_message_recipients r where r.donor_user_id = uid and r.read_at is null)));
end $$;

-- Those with a received donation who have not unsubscribed; one row per address.
create function private.active_donors(p_nonprofit_id text) returns table (email text, user_id uuid, name text)
language sql stable security definer set search_path = '' as $$
  select distinct on (lower(x.email)) x.email, x.user_id, x.name from (
    select coalesce(d.donor_email, p.email) as email, d.donor_user_id as user_id, d.donor_name as name, d.received_at
    from public.donations d left join public.profiles p on p.id = d.donor_user_id
    where d.nonprofit_id = p_nonprofit_id and d.status = 'received') x
  where x.email is not null and not exists (select 1 from private.subscriptions s
    where s.list = p_nonprofit_id and lower(s.email) = lower(x.email) and s.unsubscribed_at is not null)
  order by lower(x.email), x.user_id nulls last, x.received_at desc
$$;

create function public.active_donor_count(nonprofit_id text) returns int
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_member(active_donor_count.nonprofit_id, array['admin', 'manager']);
  return (select count(*) from private.active_donors(active_donor_count.nonprofit_id));
end $$;

create function private.unsubscribe_link(p_list text, p_email text) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare t text;
begin
  insert into private.subscriptions (list, email) values (p_list, lower(p_email)) on conflict (list, lower(email)) do nothing;
  select s.token into t from private.subscriptions s where s.list = p_list and lower(s.email) = lower(p_email);
  return private.site_link('/unsubscribe?token=' || t);
end $$;

create function public.send_donor_message(nonprofit_id text, subject text, message text, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := send_donor_message.nonprofit_id; s text := private.clean(send_donor_message.subject); b text := private.clean(send_donor_message.message);
  errors jsonb := '{}'; m public.donor_messages; org text; donor record; n int := 0;
begin
  perform private.require_member(np, array['admin', 'manager']);
  if coalesce(length(s), 0) < 2 then errors := errors || '{"subject": "Subject is required"}';
  elsif length(s) > 200 then errors := errors || '{"subject": "Subject must be at most 200 characters"}'; end if;
  if coalesce(length(b), 0) < 10 then errors := errors || '{"message": "Message must be at least 10 characters"}';
  elsif length(b) > 10000 then errors := errors || '{"message": "Message must be at most 10000 characters"}'; end if;
  if errors <> '{}' then perform private.fail(422, 'validation_failed', 'Please check the marked fields.', jsonb_build_object('fields', errors)); end if;
  if send_donor_message.key is not null then
    perform pg_advisory_xact_lock(hashtextextended('message:' || send_donor_message.key, 0));
    select * into m from public.donor_messages x where x.send_key = send_donor_message.key and x.nonprofit_id = np;
    if found then return jsonb_build_object('id', m.id, 'recipients', m.recipient_count, 'repeated', true); end if;
  end if;
  perform private.require_rate('donor-message:' || np, 20, interval '1 hour');
  select x.name into org from public.nonprofits x where x.id = np;
  insert into public.donor_messages (nonprofit_id, subject, message, sent_by, send_key) values (np, s, b, auth.uid(), send_donor_message.key) returning * into m;
  for donor in select * from private.active_donors(np) loop
    insert into public.donor_message_recipients (message_id, donor_user_id, donor_email) values (m.id, donor.user_id, donor.email);
    perform private.notify(donor.user_id, 'update', s, org || ': ' || b, '/donor-dashboard', null, m.id);
    perform private.mail(donor.email, s, jsonb_build_object('heading', s,
      'paragraphs', jsonb_build_array('A message from ' || org || ':') || to_jsonb(regexp_split_to_array(b, E'\n[ \t]*\n')),
      'button', 'Read and answer', 'link', private.site_link('/notifications'),
      'why', 'You get this mail because you gave to ' || org || '.', 'unsubscribe', private.unsubscribe_link(np, donor.email)));
    n := n + 1;
  end loop;
  update public.donor_messages x set recipient_count = n where x.id = m.id;
  return jsonb_build_object('id', m.id, 'recipients', n, 'repeated', false);
end $$;

create function public.reply_to_donor_message(message_id text, message text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare uid uuid := private.require_user(); m public.donor_messages; b text := private.clean(reply_to_donor_message.message); who text; new_id text;
begin
  select x.* into m from public.donor_messages x join public.donor_message_recipients r on r.message_id = x.id and r.donor_user_id = uid
  where x.id = reply_to_donor_message.message_id;
  if not found then perform private.fail(404, 'message_not_found', 'This message could not be found.'); end if;
  if b is null or length(b) > 10000 then
    perform private.fail(422, 'validation_failed', 'Please write an answer.', '{"fields": {"message": "Please write an answer (at most 10000 characters)."}}');
  end if;
  perform private.require_rate('reply:' || uid, 30, interval '1 hour');
  select coalesce(nullif(p.full_name, ''), p.email, 'A donor') into who from public.profiles p where p.id = uid;
  insert into public.donor_message_replies (message_id, nonprofit_id, donor_user_id, from_name, subject, message)
  values (m.id, m.nonprofit_id, uid, left(who, 200), 'Re: ' || m.subject, b) returning id into new_id;
  update public.donor_message_recipients r set read_at = coalesce(r.read_at, now()) where r.message_id = m.id and r.donor_user_id = uid;
  perform private.notify_staff(m.nonprofit_id, 'info', 'A donor answered', who || ': Re: ' || m.subject, '/nonprofit-donor-communication?tab=inbox', null, array['admin', 'manager']);
  return jsonb_build_object('id', new_id);
end $$;

create function public.mark_donor_message_read(message_id text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_user();
  update public.donor_message_recipients r set read_at = coalesce(r.read_at, now())
  where r.message_id = mark_donor_message_read.message_id and r.donor_user_id = auth.uid();
  return found;
end $$;

-- --------------------------------------------------------------------------------------------------- newsletter

-- The answer is the same for a new, a known and a confirmed address.
create function public.subscribe_newsletter(email text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare address text := lower(private.clean(subscribe_newsletter.email)); s private.subscriptions;
begin
  if not private.valid_email(address) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"email": "Please enter a valid email address"}}');
  end if;
  perform private.require_rate('newsletter:' || private.client_address(), 10, interval '1 hour');
  perform private.require_rate('newsletter-address:' || address, 3, interval '1 day');
  insert into private.subscriptions (list, email) values ('newsletter', address) on conflict (list, lower(email)) do nothing;
  select * into s from private.subscriptions x where x.list = 'newsletter' and lower(x.email) = address for update;
  if s.confirmed_at is null or s.unsubscribed_at is not null then
    perform private.mail(address, 'Please confirm your subscription', jsonb_build_object(
      'heading', 'Please confirm your subscription',
      'paragraphs', jsonb_build_array('Someone asked us to send the AidBridge newsletter to this address. If it was you, confirm with the button. If not, you need not do anything.'),
      'button', 'Confirm', 'link', private.site_link('/newsletter?token=' || s.token),
      'why', 'You get this mail once, because this address was typed on our blog.', 'unsubscribe', private.site_link('/unsubscribe?token=' || s.token)));
  else
    perform private.mail(address, 'You already get our newsletter', jsonb_build_object(
      'heading', 'You already get our newsletter', 'paragraphs', jsonb_build_array('This address is on the list already. There is nothing to do.'),
      'why', 'You get this mail because this address was typed on our blog.', 'unsubscribe', private.site_link('/unsubscribe?token=' || s.token)));
  end if;
  return '{"sent": true}';
end $$;

create function public.confirm_newsletter(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_rate('token:' || private.client_address(), 60, interval '1 minute');
  update private.subscriptions s set confirmed_at = coalesce(s.confirmed_at, now()), unsubscribed_at = null
  where s.list = 'newsletter' and s.token = confirm_newsletter.token;
  return jsonb_build_object('confirmed', found);
end $$;

create function public.unsubscribe(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare s private.subscriptions;
begin
  perform private.require_rate('token:' || private.client_address(), 60, interval '1 minute');
  update private.subscriptions x set unsubscribed_at = coalesce(x.unsubscribed_at, now()) where x.token = unsubscribe.token returning * into s;
  if s.id is null then return '{"unsubscribed": false}'; end if;
  return jsonb_build_object('unsubscribed', true, 'list', case when s.list = 'newsletter' then 'newsletter' else 'donors' end,
    'organization', (select n.name from public.nonprofits n where n.id = s.list));
end $$;
