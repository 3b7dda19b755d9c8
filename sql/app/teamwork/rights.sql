-- Privileges. rights.sql in the folder above revokes everything first.

grant select, insert, update, delete on public.saved_replies to authenticated;

-- Signed in: names the caller and checks role and state itself.
grant execute on function public.assign_request(text, text, text) to authenticated, service_role;

-- For the view of incoming requests.
grant execute on function private.is_staff(public.nonprofit_team_members) to authenticated, service_role;
