-- Invitations are mail to strangers in an organization's name, so they leave only once whoever invites has proved their own
-- address, a few at a time. Until then the member waits in the list with invited_at null; nothing typed is lost.

-- A name that one person gives and a third one reads in a mail: short, and nothing a mail program makes a link of.
create function private.mail_name(p text, p_instead text) returns text
language sql immutable set search_path = '' as $$
  select case when p is null or p ~* '://|@|www\.|[a-z0-9]\.[a-z]{2,}' then p_instead else left(p, 80) end
$$;

-- Counts an invitation against each limit and sends it.
create function private.invite(p_member public.nonprofit_team_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare founded timestamptz;
begin
  select n.created_at into founded from public.nonprofits n where n.id = p_member.nonprofit_id;
  perform private.require_rate('invite:' || p_member.nonprofit_id, 20, interval '1 hour');
  perform private.require_rate('invite-day:' || p_member.nonprofit_id, case when founded > now() - interval '1 day' then 20 else 50 end, interval '1 day');
  perform private.require_rate('invite-by:' || coalesce(auth.uid()::text, 'server'), 50, interval '1 day');
  perform private.require_rate('invite-for:' || lower(p_member.email), 5, interval '1 day');
  perform private.send_invitation(p_member);
end $$;

-- The platform's own inserts may invite at once; a person must have proved an address.
create function private.may_invite() returns boolean
language sql volatile security definer set search_path = '' as $$
  select auth.uid() is null or private.address_is_proved()
$$;

create or replace function private.on_team_member_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if private.may_invite() then
    perform private.invite(new);
  else
    perform private.require_rate('member:' || new.nonprofit_id, 50, interval '1 day');
  end if;
  return null;
end $$;

-- Sends what waited for this admin's proof. A limit ends the round; the rest goes by 'Send again'.
create function private.send_waiting_invitations(p_user_id uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare m public.nonprofit_team_members; sent int := 0;
begin
  for m in select x.* from public.nonprofit_team_members x join public.nonprofits n on n.id = x.nonprofit_id and n.status <> 'closed'
    where x.user_id = 'pending' and x.is_active and x.invited_at is null
      and exists (select 1 from public.nonprofit_team_members a where a.nonprofit_id = x.nonprofit_id and a.user_id = p_user_id::text and a.is_active and a.role = 'admin')
    order by x.created_at for update of x
  loop
    begin
      perform private.invite(m);
      sent := sent + 1;
    exception when sqlstate 'PT429' then exit;
    end;
  end loop;
  return sent;
end $$;

create or replace function public.resend_team_invitation(member_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare m public.nonprofit_team_members;
begin
  select * into m from public.nonprofit_team_members x where x.id = resend_team_invitation.member_id;
  perform private.require_member(m.nonprofit_id, array['admin']);
  select * into m from public.nonprofit_team_members x where x.id = m.id for update;
  if m.user_id <> 'pending' then perform private.fail(409, 'already_joined', 'This person has already joined.'); end if;
  if not m.is_active then perform private.fail(409, 'member_inactive', 'This member is inactive. Activate them first.'); end if;
  if not private.may_invite() then
    perform private.fail(403, 'address_unproved', 'Confirm your own email address first. Then the invitation goes out.');
  end if;
  perform private.invite(m);
  return '{"sent": true}';
end $$;

-- A fresh invitation for a pending member: older ones end, the mail goes out.
create or replace function private.send_invitation(p_member public.nonprofit_team_members) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare token text := private.new_token(); org text;
begin
  select private.mail_name(name, 'A nonprofit') into org from public.nonprofits where id = p_member.nonprofit_id;
  update private.team_invitations set expires_at = now() where member_id = p_member.id and accepted_at is null and expires_at > now();
  insert into private.team_invitations (member_id, token_hash, email, invited_by)
  values (p_member.id, private.hash_token(token), lower(p_member.email), auth.uid());
  update public.nonprofit_team_members set invited_at = now() where id = p_member.id;
  perform private.mail(p_member.email, 'Join ' || org || ' on AidBridge', jsonb_build_object(
    'heading', 'Join ' || org,
    'paragraphs', jsonb_build_array(
      'Hello ' || private.mail_name(private.clean(p_member.full_name), 'there') || ',',
      org || ' invites you to join its team as ' || p_member.role || '. Sign in or sign up with this email address, then accept.'),
    'button', 'Accept the invitation', 'link', private.site_link('/team-invitation?token=' || token),
    'after', 'The invitation is good for 14 days and works once.',
    'why', 'You get this mail because ' || org || ' added this address to its team.'));
end $$;

create or replace function public.claim_guest_requests() returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare uid uuid := private.require_user(); address text; got record;
begin
  if not private.address_is_proved() then
    return jsonb_build_object('proved', false, 'claimed_requests', 0, 'claimed_donations', 0);
  end if;
  select a.email into address from private.account_addresses a where a.user_id = uid;
  select * into got from private.claim_for(uid, address);
  perform private.send_waiting_invitations(uid);
  return jsonb_build_object('proved', true, 'claimed_requests', got.requests, 'claimed_donations', got.donations);
end $$;

revoke all on function private.mail_name(text, text), private.invite(public.nonprofit_team_members), private.may_invite(), private.send_waiting_invitations(uuid)
  from public, anon, authenticated, service_role;
