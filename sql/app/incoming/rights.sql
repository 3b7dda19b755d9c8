-- Privileges. rights.sql in the folder above revokes everything first.

grant select on public.incoming_requests to authenticated;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.incoming_request_counts(text), public.incoming_page(text, text, text, text, boolean, int, int, boolean)
  to authenticated, service_role;

-- Helpers that policies, views and invoker triggers call as the signed-in user.
grant execute on function
  private.part_shows_person(text, text, text), private.amount_for_part(numeric, numeric, text, text), private.amount_text(numeric)
  to authenticated, service_role;
