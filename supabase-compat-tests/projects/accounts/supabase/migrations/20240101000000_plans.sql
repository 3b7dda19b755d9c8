create table public.plans (person uuid primary key references auth.users (id) on delete cascade, plan text not null default 'free');
alter table public.plans enable row level security;
create policy "people see their plan" on public.plans for select to authenticated using (person = (select auth.uid()));

create function public.begin_plan() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  insert into public.plans (person) values (new.id);
  return new;
end $$;
create trigger on_new_person after insert on auth.users for each row execute function public.begin_plan();

create function public.with_plan(event jsonb) returns jsonb language plpgsql stable set search_path = '' as $$
declare
  plan text := (select p.plan from public.plans p where p.person = (event ->> 'user_id')::uuid);
begin
  return jsonb_set(event, '{claims,plan}', coalesce(to_jsonb(plan), 'null'));
end $$;
grant execute on function public.with_plan to supabase_auth_admin;
revoke execute on function public.with_plan from public, anon, authenticated;
grant select on public.plans to supabase_auth_admin;
create policy "the hook reads plans" on public.plans for select to supabase_auth_admin using (true);
