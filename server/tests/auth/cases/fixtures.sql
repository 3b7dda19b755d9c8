-- The authentication API alone: what the application does when accounts come and go is not its contract.
do $$
declare trigger record;
begin
  for trigger in select tgname from pg_trigger where tgrelid = 'auth.users'::regclass and not tgisinternal loop
    execute format('drop trigger %I on auth.users', trigger.tgname);
  end loop;
end $$;

-- A hook that adds a claim, or does what `user_metadata.mode` says.
create or replace function public.more_claims(event jsonb) returns jsonb language plpgsql as $$
declare mode text := event->'claims'->'user_metadata'->>'mode';
begin
  if mode = 'raise' then
    raise exception 'no token';
  elsif mode = 'forget' then
    return jsonb_build_object('claims', jsonb_build_object('sub', event->'claims'->'sub'));
  end if;
  return jsonb_build_object('claims', event->'claims' || jsonb_build_object('flavour', event->'authentication_method'));
end $$;
grant execute on function public.more_claims(jsonb) to supabase_auth_admin;

-- One function for every hook: it notes what it was asked and answers as `hook_answers` says under the hook's name.
create table public.hook_asked (id bigint generated always as identity, name text, event jsonb);
create table public.hook_answers (name text, answer jsonb, mode text);
create function public.any_hook(event jsonb) returns jsonb language plpgsql security definer as $$
declare
  asked text := event->'metadata'->>'name';
  told public.hook_answers;
begin
  insert into public.hook_asked (name, event) values (asked, event);
  select * into told from public.hook_answers where name = asked;
  case told.mode
    when 'raise' then raise exception 'not today';
    when 'status' then raise exception sqlstate 'PT451' using message = 'not here', hint = 'elsewhere';
    when 'sleep' then perform pg_sleep(10);
    when 'null' then return null;
    else null;
  end case;
  return coalesce(told.answer, '{}');
end $$;
grant execute on function public.any_hook(jsonb) to supabase_auth_admin;
