-- Row level security policies.

create policy "owner reads notifications" on public.notifications for select to authenticated using (user_id = (select auth.uid()));
create policy "owner marks notifications" on public.notifications for update to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));
create policy "owner deletes notifications" on public.notifications for delete to authenticated using (user_id = (select auth.uid()));
