-- Who may use what; rights.sql of the folder above closes everything first.

grant select on public.incoming_requests to authenticated;

-- Signed in: each checks the caller's role and state itself.
grant execute on function
  public.incoming_request_counts(text), public.incoming_page(text, text, text, text, boolean, int, int, boolean)
  to authenticated, service_role;

-- Helpers that policies, views and invoker triggers call as the person who is signed in.
grant execute on function
  private.part_shows_person(text, text, text)
  to authenticated, service_role;
