-- Messages from an organization to its donors, their answers, and unsubscribing. The newsletter.

-- -------------------------------------------------------------------------------------------------------------- guards

create or replace function private.guard_reply() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() then
    new := jsonb_populate_record(old, jsonb_build_object('read_at', case when new.read_at is not null then coalesce(old.read_at, now()) end));
  end if;
  return new;
end $$;

create or replace function private.guard_receipt() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() then
    new := jsonb_populate_record(old, jsonb_build_object('read_at', case when new.read_at is not null then coalesce(old.read_at, now()) end));
  end if;
  return new;
end $$;

-- ------------------------------------------------------------------------------------------------------------ messages

-- Those with a received donation who have not unsubscribed; one row per address.
create or replace function private.active_donors(p_nonprofit_id text) returns table (email text, user_id uuid, name text)
language sql stable security definer set search_path = '' as $$
  select distinct on (lower(x.email)) x.email, x.user_id, x.name from (
    select coalesce(d.donor_email, p.email) as email, d.donor_user_id as user_id, d.donor_name as name, d.received_at
    from public.donations d left join public.profiles p on p.id = d.donor_user_id
    where d.nonprofit_id = p_nonprofit_id and d.status = 'received') x
  where x.email is not null and not exists (select 1 from private.subscriptions s
    where s.list = p_nonprofit_id and lower(s.email) = lower(x.email) and s.unsubscribed_at is not null)
  order by lower(x.email), x.user_id nulls last, x.received_at desc
$$;

create or replace function public.active_donor_count(nonprofit_id text) returns int
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_member(active_donor_count.nonprofit_id, array['admin', 'manager']);
  return (select count(*) from private.active_donors(active_donor_count.nonprofit_id));
end $$;

create or replace function private.donor_mails_a_day(p_created_at timestamptz) returns int
language sql stable set search_path = '' as $$
  select case when p_created_at > now() - interval '1 day' then 50 else 5000 end
$$;

-- The mails to donors that an organization has sent today.
create or replace function private.donor_mails_today(p_nonprofit_id text) returns int
language sql stable security definer set search_path = '' as $$
  select coalesce((select x.hits from private.rate_limits x where x.key = 'donor-mails:' || p_nonprofit_id
    and x.window_start = to_timestamp(floor(extract(epoch from now()) / 86400) * 86400)), 0)
$$;

create or replace function private.require_donor_mails(p_org public.nonprofits, p_recipients int) returns void
language plpgsql stable security definer set search_path = '' as $$
declare used int := private.donor_mails_today(p_org.id);
begin
  if used > 0 and used + p_recipients > private.donor_mails_a_day(p_org.created_at) * coalesce(private.setting('rate_limit_factor')::numeric, 1) then
    perform private.fail(429, 'rate_limited', 'Too many tries in a short time. Please wait a little and try again.', '{"retry_after_seconds": 86400}');
  end if;
end $$;

-- Mails a message to at most p_most of the remaining recipients, and returns how many have received it. Ends early at
-- the organization's daily limit; the rest goes out another day.
create or replace function private.mail_donors(p_message_id text, p_most int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare m public.donor_messages; org public.nonprofits; d record; n int := 0; spoken text;
begin
  select * into m from public.donor_messages x where x.id = p_message_id for update;
  select * into org from public.nonprofits x where x.id = m.nonprofit_id;
  for d in select x.id, x.donor_email from public.donor_message_recipients x where x.message_id = m.id and x.mailed_at is null order by x.id limit p_most for update loop
    -- a donor who already gets ten a day finds this one among the notifications
    if private.take('donor-mail-for:' || lower(d.donor_email), 10, interval '1 day') and not exists (select 1 from private.subscriptions s
      where s.list = m.nonprofit_id and lower(s.email) = lower(d.donor_email) and s.unsubscribed_at is not null) then
      exit when not private.take('donor-mails:' || m.nonprofit_id, private.donor_mails_a_day(org.created_at), interval '1 day');
      spoken := private.language_for(d.donor_email);
      perform private.mail(d.donor_email, m.subject, jsonb_build_object('as_typed', true, 'heading', m.subject,
        'paragraphs', jsonb_build_array(private.say(spoken, 'mail.donorMessage.p1', jsonb_build_object('nonprofit', org.name)))
          || to_jsonb(regexp_split_to_array(m.message, E'\n[ \t]*\n')),
        'button', private.say(spoken, 'mail.donorMessage.button', '{}'), 'link', private.site_link('/donor-dashboard?message=' || m.id), 'language', spoken,
        'why', private.say(spoken, 'mail.donorMessage.why', jsonb_build_object('nonprofit', org.name)), 'unsubscribe', private.unsubscribe_link(m.nonprofit_id, d.donor_email)));
    end if;
    update public.donor_message_recipients x set mailed_at = now() where x.id = d.id;
    n := n + 1;
  end loop;
  update public.donor_messages x set mailed_count = x.mailed_count + n where x.id = m.id returning x.mailed_count into n;
  return n;
end $$;

-- A donor message is free text to addresses that staff typed, so the limits of invitations apply: the writer's own
-- address must be proved, and mails are counted per organization and day and per address. Beyond an address's limit,
-- the message stays in the donor's notifications; beyond the organization's, the whole message is refused.
create or replace function public.send_donor_message(nonprofit_id text, subject text, message text, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := send_donor_message.nonprofit_id; s text := private.clean(send_donor_message.subject); b text := private.clean(send_donor_message.message);
  errors jsonb := '{}'; m public.donor_messages; org public.nonprofits; n int;
  content jsonb := jsonb_build_object('subject', s, 'message', b);
begin
  perform private.require_member(np, array['admin', 'manager']);
  if coalesce(length(s), 0) < 2 then errors := errors || '{"subject": "Subject is required"}';
  elsif length(s) > 200 then errors := errors || '{"subject": "Subject must be at most 200 characters"}'; end if;
  if coalesce(length(b), 0) < 10 then errors := errors || '{"message": "Message must be at least 10 characters"}';
  elsif length(b) > 10000 then errors := errors || '{"message": "Message must be at most 10000 characters"}'; end if;
  perform private.fail_fields('Please check the marked fields.', errors);
  if not private.may_invite() then
    perform private.fail(403, 'address_unproved', 'Confirm your own email address first, on the Team Members page. Then you can write to donors.');
  end if;
  if send_donor_message.key is not null then
    perform pg_advisory_xact_lock(hashtextextended('message:' || send_donor_message.key, 0));
    select * into m from public.donor_messages x where x.send_key = send_donor_message.key and x.nonprofit_id = np;
    if found then
      perform private.require_same_content('donor-message:' || np, send_donor_message.key, content,
        'The first version of this message was sent already. What you changed since was not sent. Send it again to send it as a second message.');
      return jsonb_build_object('id', m.id, 'recipients', m.recipient_count, 'mailed', m.mailed_count, 'repeated', true);
    end if;
  end if;
  perform private.require_rate('donor-message:' || np, 20, interval '1 hour');
  select * into org from public.nonprofits x where x.id = np;
  insert into public.donor_messages (nonprofit_id, subject, message, sent_by, send_key) values (np, s, b, auth.uid(), send_donor_message.key) returning * into m;
  perform private.keep_content('donor-message:' || np, send_donor_message.key, content);
  insert into public.donor_message_recipients (message_id, donor_user_id, donor_email) select m.id, d.user_id, d.email from private.active_donors(np) d;
  get diagnostics n = row_count;
  -- a message to more donors than the daily limit goes out over several days; the next message waits until it fits
  perform private.require_donor_mails(org, n);
  insert into public.notifications (user_id, type, title, message, link, donor_message_id)
  select r.donor_user_id, 'update', left(s, 200), org.name || ': ' || b, '/donor-dashboard?message=' || m.id, m.id
  from public.donor_message_recipients r where r.message_id = m.id and r.donor_user_id is not null;
  update public.donor_messages x set recipient_count = n where x.id = m.id;
  return jsonb_build_object('id', m.id, 'recipients', n, 'mailed', private.mail_donors(m.id, 100), 'repeated', false);
end $$;

-- The next batch of a message. The page calls it until all have received it; the hourly job continues if the page is
-- closed.
create or replace function public.continue_donor_message(message_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare m public.donor_messages;
begin
  perform private.require_user();
  select * into m from public.donor_messages x where x.id = continue_donor_message.message_id and x.nonprofit_id in (select private.my_managed_organizations());
  if not found then perform private.fail(404, 'message_not_found', 'This message could not be found.'); end if;
  perform private.require_member(m.nonprofit_id, array['admin', 'manager']);
  return jsonb_build_object('id', m.id, 'recipients', m.recipient_count, 'mailed', private.mail_donors(m.id, 200));
end $$;

-- A batch of the message that has waited longest, of those whose organization may still send today. The server calls it every hour, and
-- again as long as it says so: each batch is a transaction of its own.
create or replace function private.mail_waiting_donors(out again boolean)
language plpgsql volatile security definer set search_path = '' as $$
declare m record;
begin
  again := false;
  for m in select y.id, y.mailed_count from public.donor_messages y
    join public.nonprofits n on n.id = y.nonprofit_id and n.status <> 'closed'
    where y.created_at < now() - interval '5 minutes'
      and exists (select 1 from public.donor_message_recipients x where x.message_id = y.id and x.mailed_at is null)
      and private.donor_mails_today(n.id) + 1 <= private.donor_mails_a_day(n.created_at) * coalesce(private.setting('rate_limit_factor')::numeric, 1)
    order by y.created_at, y.id
  loop
    again := private.mail_donors(m.id, 200) > m.mailed_count;
    exit when again;
  end loop;
end $$;

-- ----------------------------------------------------------------------------------------------------------- the donor

create or replace function public.reply_to_donor_message(message_id text, message text, key uuid default null) returns jsonb
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
  if reply_to_donor_message.key is not null then
    perform pg_advisory_xact_lock(hashtextextended('reply:' || reply_to_donor_message.key, 0));
    select y.id into new_id from public.donor_message_replies y where y.reply_key = reply_to_donor_message.key and y.donor_user_id = uid;
    if found then
      perform private.require_same_content('reply:' || uid, reply_to_donor_message.key, to_jsonb(b),
        'Your first answer was sent already. What you changed since was not sent. Send it again to send it as a second answer.');
      return jsonb_build_object('id', new_id, 'repeated', true);
    end if;
  end if;
  perform private.require_rate('reply:' || uid, 30, interval '1 hour');
  select coalesce(nullif(p.full_name, ''), p.email, '') into who from public.profiles p where p.id = uid;
  insert into public.donor_message_replies (message_id, nonprofit_id, donor_user_id, from_name, subject, message, reply_key)
  values (m.id, m.nonprofit_id, uid, left(who, 200), 'Re: ' || m.subject, b, reply_to_donor_message.key) returning id into new_id;
  perform private.keep_content('reply:' || uid, reply_to_donor_message.key, to_jsonb(b));
  update public.donor_message_recipients r set read_at = coalesce(r.read_at, now()) where r.message_id = m.id and r.donor_user_id = uid;
  perform private.notify_staff(m.nonprofit_id, 'info', 'donorAnswered', jsonb_build_object('donor', who, 'subject', m.subject), '/nonprofit-donor-communication?tab=inbox', null, array['admin', 'manager']);
  return jsonb_build_object('id', new_id, 'repeated', false);
end $$;

create or replace function public.mark_donor_message_read(message_id text) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_user();
  update public.donor_message_recipients r set read_at = coalesce(r.read_at, now())
  where r.message_id = mark_donor_message_read.message_id and r.donor_user_id = auth.uid();
  return found;
end $$;

-- ---------------------------------------------------------------------------------- the newsletter, and leaving a list

create or replace function private.unsubscribe_link(p_list text, p_email text) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare t text;
begin
  insert into private.subscriptions (list, email) values (p_list, lower(p_email)) on conflict (list, lower(email)) do nothing;
  select s.token into t from private.subscriptions s where s.list = p_list and lower(s.email) = lower(p_email);
  return private.site_link('/unsubscribe?token=' || t);
end $$;

-- The answer is the same for a new, a known and a confirmed address.
create or replace function public.subscribe_newsletter(email text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare address text := lower(private.clean(subscribe_newsletter.email)); s private.subscriptions;
begin
  if not private.valid_email(address) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"email": "Please enter a valid email address"}}');
  end if;
  perform private.require_rate('newsletter:' || private.client_network(), 10, interval '1 hour');
  perform private.require_rate('newsletter-address:' || address, 3, interval '1 day');
  insert into private.subscriptions (list, email) values ('newsletter', address) on conflict (list, lower(email)) do nothing;
  select * into s from private.subscriptions x where x.list = 'newsletter' and lower(x.email) = address for update;
  if s.confirmed_at is null or s.unsubscribed_at is not null then
    perform private.mail_words(address, private.caller_language(), 'newsletter', '{}', jsonb_build_object(
      'link', private.site_link('/newsletter?token=' || s.token), 'unsubscribe', private.site_link('/unsubscribe?token=' || s.token)));
  else
    perform private.mail_words(address, private.caller_language(), 'newsletterAgain', '{}',
      jsonb_build_object('unsubscribe', private.site_link('/unsubscribe?token=' || s.token)));
  end if;
  return '{"sent": true}';
end $$;

create or replace function public.confirm_newsletter(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_rate('token:' || private.client_network(), 60, interval '1 minute');
  update private.subscriptions s set confirmed_at = coalesce(s.confirmed_at, now()), unsubscribed_at = null
  where s.list = 'newsletter' and s.token = confirm_newsletter.token;
  return jsonb_build_object('confirmed', found);
end $$;

create or replace function public.unsubscribe(token text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare s private.subscriptions;
begin
  perform private.require_rate('token:' || private.client_network(), 60, interval '1 minute');
  update private.subscriptions x set unsubscribed_at = coalesce(x.unsubscribed_at, now()) where x.token = unsubscribe.token returning * into s;
  if s.id is null then return '{"unsubscribed": false}'; end if;
  return jsonb_build_object('unsubscribed', true, 'list', case when s.list = 'newsletter' then 'newsletter' else 'donors' end,
    'organization', (select n.name from public.nonprofits n where n.id = s.list));
end $$;
