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
