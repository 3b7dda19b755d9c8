create extension if not exists pg_cron;
create extension if not exists pg_net with schema extensions;
create extension if not exists pgmq;
create extension if not exists moddatetime with schema extensions;

create table public.notes (id bigint generated always as identity primary key, text text not null, seen boolean not null default false,
  updated_at timestamptz not null default 'epoch');
alter table public.notes enable row level security;
create trigger touched before update on public.notes for each row execute function extensions.moddatetime(updated_at);

select pgmq.create('notes');

-- The queue for supabase-js, as the dashboard exposes queues.
create function public.queue_note(message jsonb) returns bigint language sql security definer set search_path = '' as $$
  select * from pgmq.send('notes', message)
$$;

-- Empties the queue every second.
create function public.work_off() returns void language plpgsql security definer set search_path = '' as $$
declare
  item record;
begin
  for item in select * from pgmq.read('notes', 30, 10) loop
    insert into public.notes (text) values (item.message ->> 'text');
    perform pgmq.archive('notes', item.msg_id);
  end loop;
end $$;
select cron.schedule('work-off', '1 second', 'select public.work_off()');

-- Tells the edge function of each new note, with a key of the vault.
create function public.tell() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  perform net.http_post(
    url := (select decrypted_secret from vault.decrypted_secrets where name = 'api_url') || '/functions/v1/note',
    body := jsonb_build_object('id', new.id),
    headers := jsonb_build_object('content-type', 'application/json',
      'x-key', (select decrypted_secret from vault.decrypted_secrets where name = 'note_key')));
  return new;
end $$;
create trigger tell after insert on public.notes for each row execute function public.tell();

create function public.keep_url(url text) returns uuid language sql security definer set search_path = '' as $$
  select vault.create_secret(url, 'api_url')
$$;
revoke execute on function public.keep_url from public, anon, authenticated;
grant execute on function public.keep_url to service_role;
