create table if not exists supabase_migrations.extra (a int);
create or replace function storage.custom() returns text language sql as $$ select 'x' $$;
create index if not exists objects_owner_idx on storage.objects (owner);
create policy "u" on auth.users for select using (true);
