-- Row level security policies.

-- For admins and managers, who write to people.
create policy "managers read saved replies" on public.saved_replies for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));
create policy "managers add saved replies" on public.saved_replies for insert to authenticated
  with check (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
create policy "managers change saved replies" on public.saved_replies for update to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])))
  with check (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
create policy "managers delete saved replies" on public.saved_replies for delete to authenticated
  using (nonprofit_id in (select private.my_organizations(array['admin', 'manager'])));
