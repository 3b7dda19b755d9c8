-- Notifications in the app: a code and parameters, which the app renders in the reader's language
-- (frontend/src/messages/en/ notification.ts), and the same as English text.

create or replace function private.notify(p_user_id uuid, p_type text, p_code text, p_params jsonb, p_link text default null,
  p_request_id text default null) returns void
language sql volatile security definer set search_path = '' as $$
  insert into public.notifications (user_id, type, title, message, link, request_id, code, params)
  select p_user_id, p_type, left(private.say('en', 'notification.' || p_code || '.title', p_params), 200),
    private.say('en', 'notification.' || p_code || '.body', p_params), p_link, p_request_id, p_code, p_params
  where p_user_id is not null
$$;

-- Notifies the active members of an organization who work on requests (or only those with p_roles), except p_except.
create or replace function private.notify_staff(p_nonprofit_id text, p_type text, p_code text, p_params jsonb, p_link text,
  p_request_id text default null, p_roles text[] default array['admin', 'manager', 'employee'], p_except uuid default null) returns void
language sql volatile security definer set search_path = '' as $$
  insert into public.notifications (user_id, type, title, message, link, request_id, code, params)
  select u.id, p_type, left(private.say('en', 'notification.' || p_code || '.title', p_params), 200),
    private.say('en', 'notification.' || p_code || '.body', p_params), p_link, p_request_id, p_code, p_params
  from public.nonprofit_team_members m cross join lateral (select a.id from auth.users a where a.id = private.account_id(m.user_id)) u
  where m.nonprofit_id = p_nonprofit_id and m.is_active and m.role = any (p_roles) and u.id is distinct from p_except
$$;

create or replace function private.guard_notification() returns trigger
language plpgsql set search_path = '' as $$
begin
  if private.is_client() then
    new := jsonb_populate_record(old, jsonb_build_object('read', new.read));
  end if;
  return new;
end $$;

create or replace function public.mark_all_notifications_read() returns int
language plpgsql volatile security definer set search_path = '' as $$
declare n int;
begin
  update public.notifications set read = true where user_id = private.require_user() and not read;
  get diagnostics n = row_count;
  return n;
end $$;
