-- A mail's own links are its button and its unsubscribe line. What people typed into names, reasons and questions goes to addresses that
-- somebody else may have typed, so a mail program finds nothing in it to make a link of. Messages to donors keep their
-- links: their writer's address is proved and their number counted (0029_donor_mail.sql).

-- The text with each address in it taken apart: 'evil.com' becomes 'evil .com', 'https://' becomes 'https: //'. Amounts, dates and
-- names of documents stay as they are.
create function private.unlinked(p text) returns text
language sql immutable set search_path = '' as $$
  select regexp_replace(
    regexp_replace(p, '(?<=[[:alnum:]-])([.\u3002\uff0e\uff61])(?!(?:pdf|docx?|jpe?g|png)(?![[:alnum:]/]|\.[[:alnum:]]))(?=[[:alpha:]]{2,})', ' \1', 'gi'),
    ':(?=//|\\\\)', ': ', 'g')
$$;

-- One line: no break or tab with which a name could begin a paragraph of its own.
create function private.one_line(p text) returns text
language sql immutable set search_path = '' as $$
  select btrim(regexp_replace(p, '[[:cntrl:][:space:]]+', ' ', 'g'))
$$;

alter function private.mail(text, text, jsonb) rename to lay_out_mail;

-- Queue one mail; lay_out_mail tells the keys of p. as_typed (true): the text is one that its writer may put links in.
create function private.mail(p_to text, p_subject text, p jsonb) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if coalesce((p ->> 'as_typed')::boolean, false) then
    perform private.lay_out_mail(p_to, p_subject, p);
    return;
  end if;
  perform private.lay_out_mail(p_to, private.unlinked(private.one_line(p_subject)), p || jsonb_strip_nulls(jsonb_build_object(
    'heading', private.unlinked(private.one_line(p ->> 'heading')),
    'paragraphs', (select jsonb_agg(private.unlinked(private.one_line(x)) order by i)
      from jsonb_array_elements_text(p -> 'paragraphs') with ordinality t (x, i)),
    'quote', private.unlinked(p ->> 'quote'),
    'why', private.unlinked(private.one_line(p ->> 'why')))));
end $$;

-- A name that one person gives and a third one reads in a mail: one short line, and nothing a mail program makes a link of.
create or replace function private.mail_name(p text, p_instead text) returns text
language sql immutable set search_path = '' as $$
  select case when p is null or p ~* '://|@|www\.|[a-z0-9]\.[a-z]{2,}' then p_instead else left(private.one_line(p), 80) end
$$;

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
      perform private.mail(donor.email, s, jsonb_build_object('as_typed', true, 'heading', s,
        'paragraphs', jsonb_build_array('A message from ' || org.name || ':') || to_jsonb(regexp_split_to_array(b, E'\n[ \t]*\n')),
        'button', 'Read and answer', 'link', private.site_link('/notifications'),
        'why', 'You get this mail because you gave to ' || org.name || '.', 'unsubscribe', private.unsubscribe_link(np, donor.email)));
    end if;
    n := n + 1;
  end loop;
  update public.donor_messages x set recipient_count = n where x.id = m.id;
  return jsonb_build_object('id', m.id, 'recipients', n, 'repeated', false);
end $$;

revoke all on function private.unlinked(text), private.one_line(text), private.mail(text, text, jsonb), private.lay_out_mail(text, text, jsonb)
  from public, anon, authenticated, service_role;
