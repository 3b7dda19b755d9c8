-- A donor message is free text to addresses that staff typed, so it has the guards of an invitation: the writer's own address is
-- proved, an organization's mails of a day and the mails to one address are counted. What is over an address's limit stays in the
-- donor's notifications; the organization's limit refuses the whole message.

create or replace function public.send_donor_message(nonprofit_id text, subject text, message text, key uuid default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  np text := send_donor_message.nonprofit_id; s text := private.clean(send_donor_message.subject); b text := private.clean(send_donor_message.message);
  errors jsonb := '{}'; m public.donor_messages; org public.nonprofits; donor record; n int := 0; a_day int;
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
    if found then return jsonb_build_object('id', m.id, 'recipients', m.recipient_count, 'repeated', true); end if;
  end if;
  perform private.require_rate('donor-message:' || np, 20, interval '1 hour');
  select * into org from public.nonprofits x where x.id = np;
  a_day := case when org.created_at > now() - interval '1 day' then 50 else 5000 end;
  insert into public.donor_messages (nonprofit_id, subject, message, sent_by, send_key) values (np, s, b, auth.uid(), send_donor_message.key) returning * into m;
  for donor in select * from private.active_donors(np) loop
    insert into public.donor_message_recipients (message_id, donor_user_id, donor_email) values (m.id, donor.user_id, donor.email);
    perform private.notify(donor.user_id, 'update', s, org.name || ': ' || b, '/donor-dashboard', null, m.id);
    if private.take('donor-mail-for:' || lower(donor.email), 10, interval '1 day') then
      perform private.require_rate('donor-mails:' || np, a_day, interval '1 day');
      perform private.mail(donor.email, s, jsonb_build_object('heading', s,
        'paragraphs', jsonb_build_array('A message from ' || org.name || ':') || to_jsonb(regexp_split_to_array(b, E'\n[ \t]*\n')),
        'button', 'Read and answer', 'link', private.site_link('/notifications'),
        'why', 'You get this mail because you gave to ' || org.name || '.', 'unsubscribe', private.unsubscribe_link(np, donor.email)));
    end if;
    n := n + 1;
  end loop;
  update public.donor_messages x set recipient_count = n where x.id = m.id;
  return jsonb_build_object('id', m.id, 'recipients', n, 'repeated', false);
end $$;

-- The greeting of a mail about a request, which goes to the address that was typed: a name, not a link.
create or replace function private.greeting(r public.requests) returns text
language sql stable set search_path = '' as $$ select 'Hello ' || private.mail_name(r.first_name, 'there') || ',' $$;

-- A picture's path is in the folder of whose picture it is.
update public.profiles set photo_path = null where photo_path is not null and photo_path not like id::text || '/%';
alter table public.profiles add constraint profiles_photo_of_their_own check (photo_path is null or photo_path like id::text || '/%');
update public.nonprofits set logo_path = null where logo_path is not null and not starts_with(logo_path, id || '/');
alter table public.nonprofits add constraint nonprofits_logo_of_their_own check (logo_path is null or starts_with(logo_path, id || '/'));
