create table orders (id int primary key, total numeric(10,2));
create trigger "my_webhook" after insert or update or delete on "public"."orders" for each row execute function "supabase_functions"."http_request"('http://host.docker.internal:54321/functions/v1/x', 'POST', '{"Content-Type":"application/json","Authorization":"Bearer x"}', '{}', '1000');
insert into orders values (1, 2);
create or replace function notify_x() returns trigger language plpgsql security definer set search_path = public, extensions as $$
declare request_id bigint; begin
  select into request_id net.http_post(url := coalesce(current_setting('app.settings.url', true), '') || 'http://127.0.0.1:9/', body := row_to_json(new)::jsonb, headers := '{"Content-Type": "application/json"}'::jsonb); return new; end $$;
create trigger notify after insert on orders for each row execute function notify_x();
insert into orders values (2, 2);
