-- Row level security policies.

create policy "everyone reads the list of reasons" on public.denial_reasons for select to anon, authenticated using (true);

create policy "owner reads requests" on public.requests for select to authenticated using (user_id = (select auth.uid()));
create policy "owner keeps drafts" on public.requests for insert to authenticated
  with check (user_id = (select auth.uid()) and status = 'draft');
create policy "owner changes drafts" on public.requests for update to authenticated
  using (user_id = (select auth.uid()) and status = 'draft') with check (user_id = (select auth.uid()) and status = 'draft');
create policy "owner deletes drafts" on public.requests for delete to authenticated
  using (user_id = (select auth.uid()) and status = 'draft');

-- Finds the owner's rows by the index on request_id, with one subquery instead of one per row.
create policy "owner reads the parts" on public.request_nonprofits for select to authenticated
  using (request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()))));
create policy "staff read their part" on public.request_nonprofits for select to authenticated
  using (nonprofit_id = any (array(select private.my_staff_organizations())));

create policy "owner reads the timeline" on public.request_events for select to authenticated
  using (for_requester and request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()))));
