create table public.profiles (id uuid primary key references auth.users (id) on delete cascade, username text unique, updated_at timestamptz, role text default 'user', constraint username_length check (char_length(username) >= 3));
alter table profiles enable row level security;
create policy "Users can update" on profiles for update using ((select auth.uid()) = id) with check (auth.uid() = id);
create policy "by role" on profiles for select to authenticated using ((auth.jwt() -> 'app_metadata' ->> 'role') = 'admin' or auth.role() = 'authenticated' or auth.email() = 'x');
create or replace function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.profiles (id, username) values (new.id, coalesce(new.raw_user_meta_data ->> 'username', split_part(new.email, '@', 1)));
  return new;
end; $$;
create trigger on_auth_user_created after insert on auth.users for each row execute procedure public.handle_new_user();
create trigger on_auth_user_updated after update of email on auth.users for each row when (old.email is distinct from new.email) execute function public.handle_new_user();
drop trigger on_auth_user_updated on auth.users;
create view public.people with (security_invoker = on) as select id, username from profiles;
create view public.user_emails as select u.id, u.email from auth.users u;
revoke all on public.user_emails from anon, authenticated;
grant select on auth.users to service_role;
create or replace function auth.tenant_id() returns text language sql stable as $$ select nullif(((current_setting('request.jwt.claims')::jsonb ->> 'app_metadata')::jsonb ->> 'tenant_id'), '')::text $$;
create index if not exists users_meta_idx on auth.users ((raw_user_meta_data ->> 'username'));
