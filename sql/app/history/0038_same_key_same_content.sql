-- A key stands for one content. A repeat with the same content is the same act; another content under the same key is refused, so that
-- nobody is told that something was sent or recorded which was not. And a message to thousands of donors is mailed in portions.

create table private.sent_contents (
  scope text not null,
  key uuid not null,
  hash bytea not null,
  sent_at timestamptz not null default now(),
  primary key (scope, key)
);
create index sent_contents_age on private.sent_contents (sent_at);
alter table private.sent_contents enable row level security;
comment on table private.sent_contents is 'What was sent under a client''s key, as a hash. Kept for 90 days; later a repeat is taken for the same.';

create function private.keep_content(p_scope text, p_key uuid, p_content jsonb) returns void
language sql volatile security definer set search_path = '' as $$
  insert into private.sent_contents (scope, key, hash)
  select p_scope, p_key, sha256(convert_to(jsonb_strip_nulls(p_content)::text, 'utf8')) where p_key is not null
  on conflict do nothing
$$;

-- Refuses with 409 `key_reused` and p_message when this key stands for another content.
create function private.require_same_content(p_scope text, p_key uuid, p_content jsonb, p_message text, p_detail jsonb default '{}') returns void
language plpgsql stable security definer set search_path = '' as $$
begin
  if exists (select 1 from private.sent_contents c where c.scope = p_scope and c.key = p_key
    and c.hash <> sha256(convert_to(jsonb_strip_nulls(p_content)::text, 'utf8'))) then
    perform private.fail(409, 'key_reused', p_message, p_detail);
  end if;
end $$;

-- ---------------------------------------------------------------------------------------------------- requests

-- What a request says, without what only concerns its way here.
create function private.request_content(p_input jsonb) returns jsonb
language sql immutable set search_path = '' as $$
  select p_input - array['key', 'draft_id', 'form', 'step', 'proof', 'account_id', 'title']
$$;

-- Sends a request. One that names no draft takes the caller's draft of the same key, if there is one.
create or replace function public.submit_request(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare draft text; r record; answer jsonb; scope text := 'request:' || coalesce(auth.uid()::text, ''); k uuid;
begin
  begin k := (input ->> 'key')::uuid; exception when invalid_text_representation then k := null; end;
  perform pg_advisory_xact_lock(hashtextextended('submit:' || k, 0));
  select x.id, x.request_number into r from public.requests x where x.submit_key = k and x.status <> 'draft' and (auth.uid() is null or x.user_id = auth.uid());
  if found then
    perform private.require_same_content(scope, k, private.request_content(input),
      'Your request was sent already, as ' || r.request_number || '. What you changed since was not sent.',
      jsonb_build_object('request_number', r.request_number));
  end if;
  if private.clean(input ->> 'draft_id') is null then
    draft := private.named_draft(auth.uid(), input ->> 'key');
    if draft is not null then
      perform pg_advisory_xact_lock(hashtextextended('draft:' || draft, 0));
      if exists (select 1 from public.requests x where x.id = draft and x.user_id = auth.uid() and x.status = 'draft') then
        input := input || jsonb_build_object('draft_id', draft);
      end if;
    end if;
  end if;
  answer := private.send_request(input);
  perform private.keep_content(scope, k, private.request_content(input));
  return answer;
end $$;

-- ------------------------------------------------------------------------------------------------------- money

create or replace function public.record_payout(request_id text, amount numeric, note text default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  r public.requests; paid numeric; a numeric := record_payout.amount;
  content jsonb := jsonb_build_object('amount', private.amount_text(record_payout.amount), 'note', private.clean(record_payout.note));
begin
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(record_payout.request_id)
    and x.claimed_by in (select private.my_staff_organizations()) for update;
  if not found then perform private.fail_request_not_found(); end if;
  perform private.require_member(r.claimed_by, array['admin', 'manager']);
  if r.status <> 'approved' then
    perform private.fail(409, 'not_approved', 'Only an approved request can be paid.', jsonb_build_object('status', r.status));
  end if;
  select coalesce(sum(t.amount), 0) into paid from public.budget_transactions t where t.request_id = r.id and t.type = 'Payout';
  if exists (select 1 from public.budget_transactions t where t.request_id = r.id and t.payout_key = record_payout.key) then
    perform private.require_same_content('payout:' || r.id, record_payout.key, content, 'Another payment of ' || (
      select private.amount_text(t.amount) from public.budget_transactions t where t.payout_key = record_payout.key)
      || ' was recorded from this form already. What you changed since was not recorded. Close this window and look at the list.');
    return jsonb_build_object('granted', r.amount_approved, 'paid', paid, 'outstanding', r.amount_approved - paid, 'repeated', true);
  end if;
  perform private.require_amount(a);
  if paid + a > r.amount_approved then
    perform private.fail(409, 'payout_exceeds_grant', 'Of this grant ' || private.amount_text(r.amount_approved - paid) || ' is left to pay.',
      jsonb_build_object('outstanding', r.amount_approved - paid));
  end if;
  insert into public.budget_transactions (nonprofit_id, type, amount, category, request_id, request_number, note, created_by, payout_key)
  values (r.claimed_by, 'Payout', a, r.category, r.id, r.request_number, left(private.clean(record_payout.note), 1000), auth.uid(), record_payout.key);
  perform private.keep_content('payout:' || r.id, record_payout.key, content);
  insert into public.request_events (request_id, type, actor, nonprofit_id, actor_user_id, amount) values (r.id, 'paid', 'nonprofit', r.claimed_by, auth.uid(), a);
  perform private.notify(r.user_id, 'success', 'Payment recorded', private.amount_text(a) || ' for ' || r.request_number || ' is on its way.', '/request/' || r.id, r.id);
  return jsonb_build_object('granted', r.amount_approved, 'paid', paid + a, 'outstanding', r.amount_approved - paid - a, 'repeated', false);
end $$;

create or replace function public.record_donation(nonprofit_id text, amount numeric, donor_name text, donor_email text default null,
  received_at timestamptz default null, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare np text := record_donation.nonprofit_id; who text := private.clean(record_donation.donor_name); mail text := private.clean(record_donation.donor_email);
  d public.donations;
  content jsonb := jsonb_build_object('amount', private.amount_text(record_donation.amount), 'name', who, 'email', lower(mail), 'received_at', record_donation.received_at);
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
    if found then
      perform private.require_same_content('donation:' || np, record_donation.key, content, 'A donation of ' || private.amount_text(d.amount)
        || ' was recorded from this form already. What you changed since was not recorded. Close this window and look at the list.');
      return jsonb_build_object('donation_id', d.id, 'repeated', true);
    end if;
  end if;
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, status, received_at, pledged_at, recorded_by, pledge_key)
  values (np, (select a.user_id from private.account_addresses a where a.email = lower(mail) and a.proved_at is not null limit 1), who, mail,
    record_donation.amount, 'received', coalesce(record_donation.received_at, now()), coalesce(record_donation.received_at, now()), auth.uid(), record_donation.key)
  returning * into d;
  perform private.keep_content('donation:' || np, record_donation.key, content);
  perform private.book_donation(d);
  return jsonb_build_object('donation_id', d.id, 'repeated', false);
end $$;

create or replace function public.pledge_donation(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := auth.uid(); k uuid; a numeric; mail text := private.clean(input ->> 'email'); n public.nonprofits; d public.donations; errors jsonb := '{}';
  content jsonb;
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
  content := jsonb_build_object('nonprofit', n.id, 'amount', private.amount_text(a), 'email', lower(mail), 'name', private.clean(input ->> 'name'));
  select * into d from public.donations x where x.pledge_key = k;
  if found then
    perform private.require_same_content('pledge', k, content,
      'Your first pledge was recorded already. What you changed since was not recorded. Close this window to make another pledge.');
    return jsonb_build_object('donation_id', d.id, 'nonprofit', (select x.name from public.nonprofits x where x.id = d.nonprofit_id), 'amount', d.amount, 'repeated', true);
  end if;
  perform private.require_rate('pledge:' || coalesce(uid::text, private.client_address()), 10, interval '1 hour');
  perform private.require_rate('pledge-for:' || lower(mail), 10, interval '1 day');  -- each sends that address a mail
  insert into public.donations (nonprofit_id, donor_user_id, donor_name, donor_email, amount, pledge_key)
  values (n.id, uid, coalesce(left(private.clean(input ->> 'name'), 200), (select p.full_name from public.profiles p where p.id = uid), ''), mail, a, k)
  returning * into d;
  perform private.keep_content('pledge', k, content);
  perform private.notify_staff(n.id, 'info', 'New pledge: ' || private.amount_text(a), coalesce(nullif(d.donor_name, ''), 'A donor') || ' wants to give. Mark it received when the money is here.', '/nonprofit-budget', null, array['admin', 'manager']);
  perform private.mail(mail, 'Thank you for your pledge to ' || n.name, jsonb_build_object(
    'heading', 'Thank you for your pledge',
    'paragraphs', jsonb_build_array('You want to give ' || private.amount_text(a) || ' to ' || n.name || '.',
      n.name || ' writes to you about how to send it. We take no card details.'),
    'why', 'You get this mail because someone pledged a donation with this address on AidBridge.', 'unsubscribe', private.unsubscribe_link(n.id, mail)));
  return jsonb_build_object('donation_id', d.id, 'nonprofit', n.name, 'amount', a, 'repeated', false);
end $$;

-- -------------------------------------------------------------------------------------------------- donor mail

alter table public.donor_message_recipients add column mailed_at timestamptz;
update public.donor_message_recipients set mailed_at = created_at;
create index donor_message_recipients_waiting on public.donor_message_recipients (message_id, id) where mailed_at is null;
alter table public.donor_messages add column mailed_count int not null default 0;
update public.donor_messages set mailed_count = recipient_count;
grant select (mailed_count) on public.donor_messages to authenticated;

create function private.donor_mails_a_day(p_created_at timestamptz) returns int
language sql stable set search_path = '' as $$
  select case when p_created_at > now() - interval '1 day' then 50 else 5000 end
$$;

create function private.require_donor_mails(p_org public.nonprofits, p_recipients int) returns void
language plpgsql stable security definer set search_path = '' as $$
declare
  used int := coalesce((select x.hits from private.rate_limits x where x.key = 'donor-mails:' || p_org.id
    and x.window_start = to_timestamp(floor(extract(epoch from now()) / 86400) * 86400)), 0);
begin
  if used > 0 and used + p_recipients > private.donor_mails_a_day(p_org.created_at) * coalesce(private.setting('rate_limit_factor')::numeric, 1) then
    perform private.fail(429, 'rate_limited', 'Too many tries in a short time. Please wait a little and try again.', '{"retry_after_seconds": 86400}');
  end if;
end $$;

-- Mails a message to at most p_most of those who have not got it yet, and gives how many have by now. Ends early at the organization's
-- limit of a day; what is left goes another day.
create function private.mail_donors(p_message_id text, p_most int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare m public.donor_messages; org public.nonprofits; d record; n int := 0;
begin
  select * into m from public.donor_messages x where x.id = p_message_id for update;
  select * into org from public.nonprofits x where x.id = m.nonprofit_id;
  for d in select x.id, x.donor_email from public.donor_message_recipients x where x.message_id = m.id and x.mailed_at is null order by x.id limit p_most for update loop
    -- a donor who gets ten a day already reads this one among the notifications
    if private.take('donor-mail-for:' || lower(d.donor_email), 10, interval '1 day') and not exists (select 1 from private.subscriptions s
      where s.list = m.nonprofit_id and lower(s.email) = lower(d.donor_email) and s.unsubscribed_at is not null) then
      exit when not private.take('donor-mails:' || m.nonprofit_id, private.donor_mails_a_day(org.created_at), interval '1 day');
      perform private.mail(d.donor_email, m.subject, jsonb_build_object('as_typed', true, 'heading', m.subject,
        'paragraphs', jsonb_build_array('A message from ' || org.name || ':') || to_jsonb(regexp_split_to_array(m.message, E'\n[ \t]*\n')),
        'button', 'Read and answer', 'link', private.site_link('/donor-dashboard?message=' || m.id),
        'why', 'You get this mail because you gave to ' || org.name || '.', 'unsubscribe', private.unsubscribe_link(m.nonprofit_id, d.donor_email)));
    end if;
    update public.donor_message_recipients x set mailed_at = now() where x.id = d.id;
    n := n + 1;
  end loop;
  update public.donor_messages x set mailed_count = x.mailed_count + n where x.id = m.id returning x.mailed_count into n;
  return n;
end $$;

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
  -- a message to more than a day's mails goes out over days; the next one waits until it fits
  perform private.require_donor_mails(org, n);
  insert into public.notifications (user_id, type, title, message, link, donor_message_id)
  select r.donor_user_id, 'update', left(s, 200), org.name || ': ' || b, '/donor-dashboard?message=' || m.id, m.id
  from public.donor_message_recipients r where r.message_id = m.id and r.donor_user_id is not null;
  update public.donor_messages x set recipient_count = n where x.id = m.id;
  return jsonb_build_object('id', m.id, 'recipients', n, 'mailed', private.mail_donors(m.id, 100), 'repeated', false);
end $$;

-- The next portion of a message that is on its way; the page calls it until all have it, and the hourly sweep takes over when the page is gone.
create function public.continue_donor_message(message_id text) returns jsonb
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

-- One portion of each message that waits, once an hour.
create function private.mail_waiting_donors() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare m record;
begin
  for m in select distinct x.message_id from public.donor_message_recipients x join public.donor_messages y on y.id = x.message_id
    join public.nonprofits n on n.id = y.nonprofit_id and n.status <> 'closed'
    where x.mailed_at is null and y.created_at < now() - interval '5 minutes' limit 20
  loop
    perform private.mail_donors(m.message_id, 2000);
  end loop;
end $$;
insert into ferrobase.hourly (function) values ('private.mail_waiting_donors') on conflict do nothing;

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
  select coalesce(nullif(p.full_name, ''), p.email, 'A donor') into who from public.profiles p where p.id = uid;
  insert into public.donor_message_replies (message_id, nonprofit_id, donor_user_id, from_name, subject, message, reply_key)
  values (m.id, m.nonprofit_id, uid, left(who, 200), 'Re: ' || m.subject, b, reply_to_donor_message.key) returning id into new_id;
  perform private.keep_content('reply:' || uid, reply_to_donor_message.key, to_jsonb(b));
  update public.donor_message_recipients r set read_at = coalesce(r.read_at, now()) where r.message_id = m.id and r.donor_user_id = uid;
  perform private.notify_staff(m.nonprofit_id, 'info', 'A donor answered', who || ': Re: ' || m.subject, '/nonprofit-donor-communication?tab=inbox', null, array['admin', 'manager']);
  return jsonb_build_object('id', new_id, 'repeated', false);
end $$;

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
  perform private.add_up_tally();
end $$;

revoke all on function private.keep_content(text, uuid, jsonb), private.require_same_content(text, uuid, jsonb, text, jsonb), private.request_content(jsonb),
  private.donor_mails_a_day(timestamptz), private.require_donor_mails(public.nonprofits, int), private.mail_donors(text, int), private.mail_waiting_donors(), public.continue_donor_message(text) from public, anon, authenticated, service_role;
grant execute on function private.mail_waiting_donors() to service_role;
grant execute on function public.continue_donor_message(text) to authenticated, service_role;

notify pgrst, 'reload schema';
