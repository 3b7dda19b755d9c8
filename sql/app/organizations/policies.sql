-- Row level security policies.

create policy "members read their organization" on public.nonprofits for select to authenticated
  using (admin_user_id = (select auth.uid()) or id = any (array(select private.my_organizations(array['admin', 'manager', 'employee', 'volunteer'], true))));
create policy "a user founds one organization" on public.nonprofits for insert to authenticated
  with check (admin_user_id = (select auth.uid()));
create policy "admins change their organization" on public.nonprofits for update to authenticated
  using (id in (select private.my_admin_organizations())) with check (id in (select private.my_admin_organizations()));
create policy "visitors read active organizations" on public.nonprofits for select to anon using (status = 'active');

create policy "staff read settings" on public.nonprofit_settings for select to authenticated
  using (nonprofit_id = any (array(select private.my_staff_organizations())));
create policy "admins change settings" on public.nonprofit_settings for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin'])));

create policy "members read their own row" on public.nonprofit_team_members for select to authenticated
  using (user_id = (select auth.uid())::text);
create policy "managers read the team" on public.nonprofit_team_members for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));
create policy "admins add members" on public.nonprofit_team_members for insert to authenticated
  with check (nonprofit_id in (select private.my_organizations(array['admin'])));
create policy "admins change members" on public.nonprofit_team_members for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin'])));
create policy "admins remove members" on public.nonprofit_team_members for delete to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin'])));

create policy "everyone reads categories" on public.categories for select to anon, authenticated
  using (nonprofit_id is null or is_active or nonprofit_id in (select private.my_staff_organizations()));
create policy "managers add categories" on public.categories for insert to authenticated
  with check (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
create policy "managers change categories" on public.categories for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
create policy "managers delete categories" on public.categories for delete to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
