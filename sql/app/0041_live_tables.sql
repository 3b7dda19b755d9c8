-- The tables whose changes AidBridge's pages follow (`features/*/live.ts`). Who is told of a row is decided by its policies, and of what
-- in it by the privileges on its columns; of a deleted row everybody who follows the table learns the key.
do $$
declare
  live text;
begin
  foreach live in array array['notifications', 'requests', 'request_nonprofits', 'donor_messages', 'donor_message_replies'] loop
    if exists (select 1 from pg_publication where pubname = 'supabase_realtime' and not puballtables)
      and not exists (select 1 from pg_publication_tables where pubname = 'supabase_realtime' and schemaname = 'public' and tablename = live)
    then
      execute format('alter publication supabase_realtime add table public.%I', live);
    end if;
  end loop;
exception when insufficient_privilege then
  raise notice 'supabase_realtime is not ours to change: the pages ask by themselves';
end $$;
