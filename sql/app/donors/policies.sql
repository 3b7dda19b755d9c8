-- Row level security policies.

create policy "managers read sent messages" on public.donor_messages for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));
-- reads a donor's messages with a single subquery instead of one per row
create policy "donors read what they received" on public.donor_messages for select to authenticated
  using (id = any (array(select r.message_id from public.donor_message_recipients r where r.donor_user_id = (select auth.uid()))));

create policy "donors read their receipts" on public.donor_message_recipients for select to authenticated
  using (donor_user_id = (select auth.uid()));
create policy "donors mark their receipts" on public.donor_message_recipients for update to authenticated
  using (donor_user_id = (select auth.uid())) with check (donor_user_id = (select auth.uid()));

create policy "managers read the inbox" on public.donor_message_replies for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));
create policy "managers mark the inbox" on public.donor_message_replies for update to authenticated
  using (nonprofit_id in (select private.my_managed_organizations()))
  with check (nonprofit_id in (select private.my_managed_organizations()));
create policy "donors read their replies" on public.donor_message_replies for select to authenticated
  using (donor_user_id = (select auth.uid()));
