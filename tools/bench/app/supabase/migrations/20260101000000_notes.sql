create table public.notes (
  id bigint generated always as identity primary key,
  owner uuid not null default auth.uid() references auth.users (id) on delete cascade,
  title text not null check (title <> '')
);
alter table public.notes enable row level security;
create policy "one's own" on public.notes to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
alter publication supabase_realtime add table public.notes;
