-- Row level security policies.

create policy "owner reads role" on public.user_roles for select to authenticated using (user_id = (select auth.uid()));
create policy "owner sets role" on public.user_roles for insert to authenticated with check (user_id = (select auth.uid()));
create policy "owner changes role" on public.user_roles for update to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));

create policy "owner reads profile" on public.profiles for select to authenticated using (id = (select auth.uid()));
create policy "owner makes profile" on public.profiles for insert to authenticated with check (id = (select auth.uid()));
create policy "owner changes profile" on public.profiles for update to authenticated
  using (id = (select auth.uid())) with check (id = (select auth.uid()));

create policy "owner reads identity" on public.profile_identities for select to authenticated using (user_id = (select auth.uid()));
create policy "owner writes identity" on public.profile_identities for insert to authenticated with check (user_id = (select auth.uid()));
create policy "owner changes identity" on public.profile_identities for update to authenticated
  using (user_id = (select auth.uid())) with check (user_id = (select auth.uid()));
create policy "owner removes identity" on public.profile_identities for delete to authenticated using (user_id = (select auth.uid()));
