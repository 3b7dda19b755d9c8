create table public.notes (
  id bigint generated always as identity primary key,
  title text not null,
  owner uuid not null default auth.uid() references auth.users on delete cascade
);
alter table public.notes enable row level security;
create policy "people have their own notes" on public.notes using (owner = auth.uid()) with check (owner = auth.uid());
grant select, insert, update, delete on public.notes to authenticated, service_role;
