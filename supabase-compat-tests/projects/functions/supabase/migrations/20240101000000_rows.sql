create table public.rows (id int primary key, owner uuid default auth.uid());
alter table public.rows enable row level security;
create policy "people see and make their rows" on public.rows for all to authenticated using (owner = (select auth.uid())) with check (owner = (select auth.uid()));
