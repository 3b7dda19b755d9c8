create table messages (id bigint generated always as identity primary key, room text, body text);
create table rooms (id int primary key);
begin;
  drop publication if exists supabase_realtime;
  create publication supabase_realtime;
commit;
alter publication supabase_realtime add table messages, rooms;
alter publication supabase_realtime drop table rooms;
alter publication supabase_realtime set (publish = 'insert, update, delete');
alter table messages replica identity full;
create policy "r" on realtime.messages for select to authenticated using (realtime.topic() = 'room-1' and realtime.messages.extension in ('broadcast', 'presence'));
create policy "w" on "realtime"."messages" for insert to authenticated with check (true);
create or replace function public.room_changes() returns trigger security definer language plpgsql as $$
begin
  perform realtime.broadcast_changes('room:' || coalesce(new.room, old.room), tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
  perform realtime.send(jsonb_build_object('a', 1), 'event', 'topic', false);
  return null;
end; $$;
create trigger t after insert or update or delete on messages for each row execute function room_changes();
insert into messages (room, body) values ('1', 'hi');
do $$ begin
  if not exists (select 1 from pg_publication_tables where pubname = 'supabase_realtime' and tablename = 'rooms') then
    alter publication supabase_realtime add table public.rooms;
  end if;
end $$;
