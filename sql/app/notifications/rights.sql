-- Privileges. rights.sql in the folder above revokes everything first.

grant select, update, delete on public.notifications to authenticated;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.mark_all_notifications_read()
  to authenticated, service_role;
