-- What the newer generator tells apart beside `shop.sql`: columns of views that can hold no null, views that take only some
-- writes, generated columns, and types of one name in two schemas.
create schema views;
create type views.state as enum ('on', 'off');
create domain views.code as text not null;
create table views.lamp (
  id int primary key,
  room text not null,
  watts int,
  doubled int generated always as (watts * 2) stored,
  state shop.state not null,
  switch views.state not null,
  code views.code,
  extra jsonb not null
);
create function views.room(views.lamp) returns text language sql as $$ select 'a column of this name is there' $$;
create function views.bright(views.lamp) returns boolean language sql as $$ select true $$;
create function views.lamps_like(lamp views.lamp, at_least int) returns setof views.lamp rows 3 language sql as $$ select $1.* $$;
create view views.plain as select id, room, watts, switch, code, extra from views.lamp;
create view views.outer_joined as
  select a.id, b.id as other, b.room as other_room from views.lamp a left join views.lamp b on b.watts = a.watts;
create view views.right_joined as
  select a.id as other, b.id from views.lamp a right join views.lamp b on b.watts = a.watts;
create view views.fully_joined as select a.id, b.room from views.lamp a full join views.lamp b using (watts);
create view views.over_views as select p.id, o.other_room, o.id as outer_id from views.plain p join views.outer_joined o on o.id = p.id;
create view views.by_subquery as select s.room, s.n from (select room, watts as n from views.lamp) s;
create view views.by_table_expression as with lit as (select id, watts from views.lamp) select lit.id, lit.watts from lit;
create view views.grouped as select room, count(*) as n from views.lamp group by room;
create view views.in_sets as select room, state from views.lamp group by grouping sets ((room), (state));
create view views.both as select room from views.lamp union all select 'a' from views.lamp;
create view views.computed as select id + 1 as next, room::varchar as text, coalesce(watts, 0) as watts from views.lamp;
create view views.declared as select max(watts) as most from views.lamp;
comment on column views.declared.most is E'The brightest\n@notNull';
create materialized view views.kept as select id, room from views.lamp;
create view views.taken as select room, count(*) as n from views.lamp group by room;
create function views.take() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger take instead of insert on views.taken for each row execute function views.take();
