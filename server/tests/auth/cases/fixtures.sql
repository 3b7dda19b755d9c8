-- The authentication API alone: what the application does when accounts come and go is not its contract.
do $$
declare trigger record;
begin
  for trigger in select tgname from pg_trigger where tgrelid = 'auth.users'::regclass and not tgisinternal loop
    execute format('drop trigger %I on auth.users', trigger.tgname);
  end loop;
end $$;
