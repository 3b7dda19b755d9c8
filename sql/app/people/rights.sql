-- Privileges. rights.sql in the folder above revokes everything first.

grant select, insert, update on public.user_roles to authenticated;
grant select, insert, update on public.profiles to authenticated;
-- ID numbers are only for their owner.
grant select, insert, update, delete on public.profile_identities to authenticated;
revoke all on public.profile_identities from service_role;

-- For everybody. Each function checks its input and is rate limited.
grant execute on function
  public.me(), public.send_address_code(text), public.check_address_code(text, text)
  to anon, authenticated, service_role;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.my_profile(), public.save_profile(jsonb), public.select_nonprofit(text), public.keep_language(text), public.age(profiles),
  public.claim_guest_requests()
  to authenticated, service_role;

-- Exporting and deleting the caller's data.
grant execute on function
  public.my_data(), public.close_account(text)
  to authenticated, service_role;
