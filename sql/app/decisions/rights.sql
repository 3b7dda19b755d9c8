-- Privileges. rights.sql in the folder above revokes everything first.

-- Helpers called by policies, constraints, views and invoker triggers as any caller; not reachable through the API.
grant execute on function
  private.status_for_part(text, text)
  to anon, authenticated, service_role;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.staff_request(text, text), public.mark_request_opened(text, text), public.open_request(text, text),
  public.approve_request(text, text, numeric, boolean), public.deny_request(text, text, text, text),
  public.request_more_info(text, text, text, text[]), public.nonprofit_dashboard(text)
  to authenticated, service_role;
