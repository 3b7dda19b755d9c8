-- Who may use what; rights.sql of the folder above closes everything first.

grant select, insert, update on public.user_roles to authenticated;
grant select, insert, update on public.profiles to authenticated;
-- ID numbers are only for their owner.
grant select, insert, update, delete on public.profile_identities to authenticated;
revoke all on public.profile_identities from service_role;

-- Open to everybody: each checks its input and counts its uses.
grant execute on function
  public.me(), public.send_address_code(text), public.check_address_code(text, text)
  to anon, authenticated, service_role;

-- Signed in: each checks the caller's role and state itself.
grant execute on function
  public.my_profile(), public.save_profile(jsonb), public.select_nonprofit(text), public.keep_language(text), public.age(profiles),
  public.claim_guest_requests()
  to authenticated, service_role;

-- What is kept about the caller, and its end.
grant execute on function
  public.my_data(), public.close_account(text)
  to authenticated, service_role;
