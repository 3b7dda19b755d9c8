-- realtime.subscription: who is subscribed to changes of which table, for tools to read. Columns: supabase/realtime
-- lib/realtime/tenants/repo/migrations. The servers use their own memory; these rows are only for information.

set local role supabase_realtime_admin;

do $$
begin
  if pg_catalog.to_regtype('realtime.equality_op') is null then
    create type realtime.equality_op as enum
      ('eq', 'neq', 'lt', 'lte', 'gt', 'gte', 'in', 'like', 'ilike', 'is', 'match', 'imatch', 'isdistinct');
  end if;
  if pg_catalog.to_regtype('realtime.user_defined_filter') is null then
    create type realtime.user_defined_filter as
      (column_name text, op realtime.equality_op, value text, negate boolean);
  end if;
end $$;

-- The rows written by each instance. Unlogged, because they mean nothing after a crash and should not fill the log.
create unlogged table if not exists realtime.noted_subscriptions (
  instance         text not null,
  channel          bigint not null,
  id               bigint generated always as identity,
  subscription_id  uuid not null,
  entity           regclass not null,
  filters          realtime.user_defined_filter[] not null default '{}',
  claims           jsonb not null,
  created_at       timestamp not null default (now() at time zone 'utc'),
  action_filter    text not null default '*' check (action_filter in ('*', 'INSERT', 'UPDATE', 'DELETE')),
  selected_columns text[],
  primary key (instance, channel, id)
);
-- Claims are personal.
alter table realtime.noted_subscriptions enable row level security;

-- An instance's slot is temporary and has its name. Without the slot (after a stop, a crash or a lost connection) the
-- instance has no subscriptions, so its rows are hidden.
create or replace view realtime.subscription as
select s.id, s.subscription_id, s.entity, s.filters, s.claims,
  pg_catalog.to_regrole(pg_catalog.quote_ident(s.claims ->> 'role')) as claims_role,
  s.created_at, s.action_filter, s.selected_columns
from realtime.noted_subscriptions s
where exists (
  select from pg_catalog.pg_replication_slots r
  where pg_catalog.starts_with(r.slot_name, 'ferrobase_realtime_' || s.instance || '_'));
revoke all on realtime.subscription, realtime.noted_subscriptions from anon, authenticated;

-- Replaces what `instance` has noted for these channels (`{channel, id, tables, filters, claims, action, columns}` each);
-- `channels` none: all of them.
create or replace function realtime.note_subscriptions(instance text, channels bigint[], subscriptions jsonb)
returns void
language sql security definer
set search_path = ''
as $$
  delete from realtime.noted_subscriptions n
  where n.instance = $1 and ($2 is null or n.channel = any ($2));
  insert into realtime.noted_subscriptions
    (instance, channel, subscription_id, entity, filters, claims, action_filter, selected_columns)
  select $1, s.channel, s.id, c.oid,
    array(
      select row (f.column_name, f.op, f.value, f.negate)::realtime.user_defined_filter
      from pg_catalog.jsonb_to_recordset(s.filters)
        as f(column_name text, op realtime.equality_op, value text, negate boolean)),
    s.claims, s.action,
    case when pg_catalog.jsonb_typeof(s.columns) = 'array'
      then array(select pg_catalog.jsonb_array_elements_text(s.columns)) end
  from pg_catalog.jsonb_to_recordset($3)
    as s(channel bigint, id uuid, tables oid[], filters jsonb, claims jsonb, action text, columns jsonb)
  cross join unnest(s.tables) as wanted(oid)
  join pg_catalog.pg_class c on c.oid = wanted.oid;
$$;
revoke execute on function realtime.note_subscriptions(text, bigint[], jsonb) from public;
grant execute on function realtime.note_subscriptions(text, bigint[], jsonb) to authenticator;

-- Deletes rows of dead instances.
create or replace function realtime.forget_subscriptions() returns void
language sql security definer
set search_path = ''
as $$
  delete from realtime.noted_subscriptions n
  where not exists (
    select from pg_catalog.pg_replication_slots r
    where pg_catalog.starts_with(r.slot_name, 'ferrobase_realtime_' || n.instance || '_'));
$$;
revoke execute on function realtime.forget_subscriptions() from public;
grant execute on function realtime.forget_subscriptions() to authenticator;

reset role;
