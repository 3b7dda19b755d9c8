select cron.schedule('nightly', '0 3 * * *', $$delete from messages where id < 0$$);
select cron.schedule('invoke', '30 seconds', $$
  select net.http_post(
      url := (select decrypted_secret from vault.decrypted_secrets where name = 'project_url') || '/functions/v1/x',
      headers := jsonb_build_object('Content-type', 'application/json', 'Authorization', 'Bearer ' || (select decrypted_secret from vault.decrypted_secrets where name = 'anon_key')),
      body := concat('{"time": "', now(), '"}')::jsonb,
      timeout_milliseconds := 5000
  ) as request_id;
$$);
select vault.create_secret('http://127.0.0.1:54321', 'project_url');
select vault.create_secret('key', 'anon_key', 'the key');
select cron.unschedule('nightly') where exists (select 1 from cron.job where jobname = 'nightly');
do $$ begin perform cron.unschedule('never'); exception when others then null; end $$;
select cron.alter_job((select jobid from cron.job where jobname = 'invoke'), active := false);
grant usage on schema cron to postgres; grant all privileges on all tables in schema cron to postgres;
select pgmq.create('jobs'); select pgmq.create_unlogged('fast');
select pgmq.send('jobs', '{"a": 1}'::jsonb); select pgmq.send('jobs', '{"a": 1}', 5); select * from pgmq.read('jobs', 30, 10);
alter table pgmq.q_jobs enable row level security;
create policy "s" on pgmq.q_jobs for all to service_role using (true);
grant usage on schema pgmq to service_role; grant all on all tables in schema pgmq to service_role; grant execute on all functions in schema pgmq to service_role; grant usage, select on all sequences in schema pgmq to service_role;
create schema if not exists pgmq_public; grant usage on schema pgmq_public to postgres, anon, authenticated, service_role;
create or replace function pgmq_public.send(queue_name text, message jsonb, sleep_seconds integer default 0) returns setof bigint language plpgsql set search_path = '' as $$ begin return query select * from pgmq.send(queue_name := queue_name, msg := message, delay := sleep_seconds); end; $$;
