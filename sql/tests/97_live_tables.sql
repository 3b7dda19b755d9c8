-- Live updates: which tables pages follow, and no reader gets a column that they could not read.
begin;
select tests.start();
select tests.cast_of_people();

do $$
declare hidden text;
begin
  perform tests.same('followed tables', (select string_agg(tablename, ', ' order by tablename) from pg_publication_tables
    where pubname = 'supabase_realtime' and schemaname = 'public'),
    'donor_message_replies, donor_messages, notifications, request_nonprofits, requests');
  perform tests.same('each has a key to ask by and policies that are asked', (select string_agg(c.relname, ', ') from pg_publication_tables p
    join pg_class c on c.oid = format('%I.%I', p.schemaname, p.tablename)::regclass
    where p.pubname = 'supabase_realtime' and p.schemaname = 'public'
      and not (c.relrowsecurity and exists (select 1 from pg_constraint k where k.conrelid = c.oid and k.contype = 'p'))), null);
  perform tests.same('nothing of it is for visitors', (select string_agg(tablename, ', ') from pg_publication_tables
    where pubname = 'supabase_realtime' and schemaname = 'public' and has_any_column_privilege('anon', format('%I.%I', schemaname, tablename), 'select')), null);
  foreach hidden in array array['request_nonprofits.opened_by', 'request_nonprofits.acted_by', 'request_nonprofits.search_text',
    'donor_messages.sent_by', 'donor_messages.send_key', 'donor_message_replies.donor_user_id'] loop
    perform tests.same(hidden || ' is stripped', has_column_privilege('authenticated', 'public.' || split_part(hidden, '.', 1), split_part(hidden, '.', 2), 'select')::text, 'false');
  end loop;
end $$;

select tests.count() as checks;
rollback;
