create table public.tenants (id uuid primary key default gen_random_uuid(), name text not null);
create table public.members (tenant uuid references public.tenants (id) on delete cascade, person uuid references auth.users (id) on delete cascade,
  primary key (tenant, person));
create table public.tasks (id bigint generated always as identity primary key, tenant uuid not null references public.tenants (id) on delete cascade,
  title text not null);

create function public.is_member(tenant uuid) returns boolean language sql stable security definer set search_path = '' as $$
  select exists (select from public.members m where m.tenant = is_member.tenant and m.person = (select auth.uid()))
$$;
alter table public.tenants enable row level security;
alter table public.members enable row level security;
alter table public.tasks enable row level security;
create policy "members see their tenant" on public.tenants for select to authenticated using (public.is_member(id));
create policy "members see who else is" on public.members for select to authenticated using (public.is_member(tenant));
create policy "members work on tasks" on public.tasks for all to authenticated using (public.is_member(tenant)) with check (public.is_member(tenant));
alter publication supabase_realtime add table public.tasks;

-- Broadcasts of a tenant are for its members.
create policy "members hear their tenant" on realtime.messages for select to authenticated
  using (public.is_member((split_part(realtime.topic(), ':', 2))::uuid));

create schema reports;
grant usage on schema reports to authenticated, service_role;
create view reports.open_tasks with (security_invoker = on) as
  select t.name, count(k.id)::int as tasks from public.tenants t left join public.tasks k on k.tenant = t.id group by t.name;
grant select on reports.open_tasks to authenticated, service_role;
