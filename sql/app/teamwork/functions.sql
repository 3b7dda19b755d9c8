-- Teamwork: handing requests over, and saved replies.

-- ------------------------------------------------------------------------------------------------------------ hand-over

create or replace function private.member_name(m public.nonprofit_team_members) returns text
language sql immutable set search_path = '' as $$
  select coalesce(nullif(m.full_name, ''), m.email)
$$;

-- Whether a member can be assigned requests: joined, active, and in a role that may read them.
create or replace function private.is_staff(m public.nonprofit_team_members) returns boolean
language sql immutable set search_path = '' as $$
  select m.is_active and m.user_id <> 'pending' and m.role in ('admin', 'manager', 'employee')
$$;

create or replace function private.staff_of(p_nonprofit_id text) returns setof public.nonprofit_team_members
language sql stable security definer set search_path = '' as $$
  select * from public.nonprofit_team_members m where m.nonprofit_id = p_nonprofit_id and private.is_staff(m)
$$;

-- {assigned_to: {id, name} | null, colleagues: [{id, name, you}]} of an organization's part of a request, for its page.
create or replace function private.who_looks_after(p_nonprofit_id text, p_assigned_to text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object(
    'assigned_to', (select jsonb_build_object('id', m.id, 'name', private.member_name(m)) from private.staff_of(p_nonprofit_id) m where m.id = p_assigned_to),
    'colleagues', coalesce((select jsonb_agg(jsonb_build_object('id', m.id, 'name', private.member_name(m), 'you', m.user_id = auth.uid()::text)
      order by lower(private.member_name(m)), m.id) from private.staff_of(p_nonprofit_id) m), '[]'::jsonb))
$$;

-- Assigns a request to a colleague or the caller, or (null) to nobody. An assignee is notified unless they assigned it
-- themselves.
create or replace function public.assign_request(request_id text, nonprofit_id text, member_id text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare me public.nonprofit_team_members; m public.nonprofit_team_members; r public.requests; part public.request_nonprofits;
begin
  me := private.require_member(assign_request.nonprofit_id, array['admin', 'manager', 'employee']);
  select * into r from public.requests x where x.id = private.request_id_of(assign_request.request_id) and x.status <> 'draft';
  if not found then perform private.fail_request_not_found(); end if;
  select * into part from public.request_nonprofits x where x.request_id = r.id and x.nonprofit_id = me.nonprofit_id for update;
  if not found or not private.staff_may_see(r.id) then perform private.fail_request_not_found(); end if;
  if r.status not in ('pending', 'processing') or part.state not in ('open', 'claimed') then
    perform private.fail_decided(r, me.nonprofit_id);
  end if;
  if assign_request.member_id is not null then
    select * into m from private.staff_of(me.nonprofit_id) x where x.id = assign_request.member_id;
    if not found then
      perform private.fail_fields('Please check the marked fields.', '{"member_id": "Choose a colleague who is active."}');
    end if;
  end if;
  if part.assigned_to is distinct from m.id then
    update public.request_nonprofits x set assigned_to = m.id where x.request_id = r.id and x.nonprofit_id = me.nonprofit_id;
    if m.id <> me.id then
      perform private.notify(private.account_id(m.user_id), 'info', 'handedOver',
        jsonb_build_object('number', r.request_number, 'category', r.category, 'name', private.member_name(me)), '/nonprofit-request/' || r.id, r.id);
    end if;
  end if;
  return private.who_looks_after(me.nonprofit_id, m.id);
end $$;

-- -------------------------------------------------------------------------------------------------------- saved replies

create or replace function private.guard_saved_reply() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.title := coalesce(private.clean(new.title), '');
  new.body := coalesce(private.clean(new.body), '');
  if tg_op = 'INSERT' then
    perform pg_advisory_xact_lock(hashtextextended('saved replies of ' || new.nonprofit_id, 0));
    if (select count(*) from public.saved_replies x where x.nonprofit_id = new.nonprofit_id) >= 100 then
      perform private.fail(409, 'too_many_replies', 'You have 100 saved replies. Please delete one first.');
    end if;
  end if;
  return new;
end $$;
