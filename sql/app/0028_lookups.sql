-- Look-ups that read a whole table because a cast or a missing index stood in the way: who is told, whose photo it is, whose
-- address it is, what has expired. They happen at every submission, code and page.

create index account_addresses_email on private.account_addresses (email);
create index profiles_email on public.profiles (lower(email));
create index donor_message_recipients_unclaimed on public.donor_message_recipients (lower(donor_email)) where donor_user_id is null;
create index rate_limits_age on private.rate_limits (window_start);
create index address_codes_age on private.address_codes (expires_at);
create index address_proofs_age on private.address_proofs (expires_at);

-- The account that a text names; null when it is no uuid.
create function private.account_id(p text) returns uuid
language sql immutable set search_path = '' as $$
  select case when p ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then p::uuid end
$$;

-- Tell the active members of an organization who work on requests (or only those with p_roles), except p_except.
create or replace function private.notify_staff(p_nonprofit_id text, p_type text, p_title text, p_message text, p_link text,
  p_request_id text default null, p_roles text[] default array['admin', 'manager', 'employee'], p_except uuid default null) returns void
language sql volatile security definer set search_path = '' as $$
  insert into public.notifications (user_id, type, title, message, link, request_id)
  select u.id, p_type, left(p_title, 200), p_message, p_link, p_request_id
  from public.nonprofit_team_members m cross join lateral (select a.id from auth.users a where a.id = private.account_id(m.user_id)) u
  where m.nonprofit_id = p_nonprofit_id and m.is_active and m.role = any (p_roles) and u.id is distinct from p_except
$$;

-- Staff may see the photo and profile name of a person whose request they may see.
create or replace function private.staff_may_see_person(p_user_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r
    where r.user_id = private.account_id(p_user_id) and r.status <> 'draft' and private.staff_may_see(r.id))
$$;

-- A member's new role shows on the account as well.
create or replace function private.on_team_role_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.user_roles u set nonprofit_role = new.role where u.user_id = private.account_id(new.user_id) and u.role = 'nonprofit';
  return null;
end $$;

-- No policy asks these any more, and no client's statement needs that one.
drop function private.received_message(text);
drop function private.manages_message(text);
revoke execute on function private.document_object_exists(text) from anon, authenticated;
revoke all on function private.account_id(text) from public, anon, authenticated, service_role;
