-- What the journeys through channels use: rows that belong to people, published, and rooms with members.

create table public.live_notes (
  id     bigint generated always as identity primary key,
  owner  uuid not null default auth.uid(),
  room   text not null,
  body   text not null,
  labels text[] not null default '{}',
  at     timestamptz not null default now()
);
alter table public.live_notes enable row level security;
create policy own on public.live_notes to authenticated using (owner = auth.uid()) with check (owner = auth.uid());

grant select, insert, update, delete on public.live_notes to authenticated;
grant all on public.live_notes to service_role;

alter publication supabase_realtime add table public.live_notes;

-- Everybody signed in may use the private rooms whose name begins with their id.
create policy reads on realtime.messages for select to authenticated
  using (realtime.topic() like auth.uid()::text || '%');
create policy writes on realtime.messages for insert to authenticated
  with check (realtime.topic() like auth.uid()::text || '%');

create function public.announce(room text, word text) returns void
language sql security definer set search_path = ''
as $$ select realtime.send(jsonb_build_object('word', word), 'announced', room, true) $$;
