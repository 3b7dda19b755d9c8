-- Row level security policies.

create policy "managers read allocations" on public.budget_allocations for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));

create policy "donor reads own donations" on public.donations for select to authenticated using (donor_user_id = (select auth.uid()));
create policy "managers read donations" on public.donations for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));

create policy "managers read transactions" on public.budget_transactions for select to authenticated
  using (nonprofit_id = any (array(select private.my_managed_organizations())));
