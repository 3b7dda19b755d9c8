-- Privileges. rights.sql in the folder above revokes everything first.

-- Columns that visitors may read; `select=*` works only if every column is listed.
grant select (id, name, mission, email, phone, website, description, location, category, average_response_time_days, logo_path, status,
    helps_with, service_area)
  on public.nonprofits to anon;
grant select on public.nonprofit_directory to anon, authenticated;
grant select, insert, update on public.nonprofits to authenticated;
grant select, update on public.nonprofit_settings to authenticated;
grant select, insert, update, delete on public.nonprofit_team_members to authenticated;
grant select on public.categories to anon;
grant select, insert, update, delete on public.categories to authenticated;

-- For everybody. Each function checks its input and is rate limited.
grant execute on function
  public.team_invitation(text), public.nonprofits_for(text, text), functions."get-categories"(jsonb)
  to anon, authenticated, service_role;

-- Helpers called by policies, constraints, views and invoker triggers as any caller; not reachable through the API.
grant execute on function
  private.my_organizations(text[], boolean), private.my_staff_organizations(), private.my_managed_organizations(),
  private.my_admin_organizations(), private.is_staff_somewhere(), private.place_parts(text), private.covers(text, text)
  to anon, authenticated, service_role;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.resend_team_invitation(text), public.accept_team_invitation(text), public.create_organization(jsonb),
  public.save_organization(text, jsonb, jsonb), public.set_second_approval(text, numeric), public.leave_organization(text),
  public.close_organization(text)
  to authenticated, service_role;

-- Helpers that policies, views and invoker triggers call as the signed-in user.
grant execute on function
  private.organization_name(text)
  to authenticated, service_role;
