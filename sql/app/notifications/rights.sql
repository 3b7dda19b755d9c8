-- Who may use what; rights.sql of the folder above closes everything first.

grant select, update, delete on public.notifications to authenticated;

-- Signed in: each checks the caller's role and state itself.
grant execute on function
  public.mark_all_notifications_read()
  to authenticated, service_role;
