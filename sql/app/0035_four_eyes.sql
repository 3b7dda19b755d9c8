-- Four eyes: nobody decides on, or pays out, a request that they themselves made. Reading it, and withdrawing it as its
-- person, stays as it is.

-- The request is the account's own, or a guest's from the account's address.
create function private.is_own_request(r public.requests, p_user uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select p_user is not null and (r.user_id is not distinct from p_user
    or exists (select 1 from auth.users u where u.id = p_user and lower(u.email) = lower(r.email)))
$$;

create function private.refuse_own_request(r public.requests, p_user uuid) returns void
language plpgsql stable security definer set search_path = '' as $$
begin
  if private.is_own_request(r, p_user) then
    perform private.fail(403, 'own_request', 'This is your own request. A colleague has to decide on it.');
  end if;
end $$;

-- Checks the caller's role, then locks request and part. Locks go request first, everywhere. What employees may not do is a
-- decision, and nobody takes one on a request of their own.
create or replace function private.begin_decision(p_request_id text, p_nonprofit_id text, p_roles text[], out r public.requests, out part public.request_nonprofits, out member public.nonprofit_team_members)
language plpgsql volatile security definer set search_path = '' as $$
begin
  member := private.require_member(p_nonprofit_id, p_roles);
  select * into r from public.requests x where x.id = private.request_id_of(p_request_id) and x.status <> 'draft' for update;
  if not found then perform private.fail_request_not_found(); end if;
  select * into part from public.request_nonprofits x where x.request_id = r.id and x.nonprofit_id = p_nonprofit_id for update;
  if not found or (part.state = 'withdrawn' and part.opened_at is null) then perform private.fail_request_not_found(); end if;
  if 'employee' <> all (p_roles) then perform private.refuse_own_request(r, auth.uid()); end if;
end $$;

-- The same for the money, by whatever road a row comes.
create function private.guard_own_transaction() returns trigger
language plpgsql security definer set search_path = '' as $$
declare r public.requests;
begin
  select * into r from public.requests x where x.id = new.request_id;
  perform private.refuse_own_request(r, new.created_by);
  return new;
end $$;
create trigger guard_own_transaction before insert on public.budget_transactions
  for each row when (new.request_id is not null and new.created_by is not null) execute function private.guard_own_transaction();

alter function public.open_request(text, text) set schema private;
revoke all on function private.open_request(text, text) from public, anon, authenticated, service_role;

-- Opens a request for a member of staff. `own`: it is theirs, so they read it and a colleague answers.
create function public.open_request(request_id text, nonprofit_id text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  opened jsonb := private.open_request(open_request.request_id, open_request.nonprofit_id);
  own boolean;
begin
  select private.is_own_request(x, auth.uid()) into own from public.requests x where x.id = opened #>> '{request,id}';
  if own and opened ? 'can' then
    opened := jsonb_set(opened, '{can}', (select jsonb_object_agg(k, false) from jsonb_object_keys(opened -> 'can') k));
  end if;
  return opened || jsonb_build_object('own', own);
end $$;

revoke all on function private.is_own_request(public.requests, uuid), private.refuse_own_request(public.requests, uuid),
  private.guard_own_transaction() from public, anon, authenticated, service_role;
revoke all on function public.open_request(text, text) from public, anon;
grant execute on function public.open_request(text, text) to authenticated, service_role;

notify pgrst, 'reload schema';
