-- What the generators tell apart beside `shop.sql` and `views.sql`: relations of one name in two schemas, foreign tables, keys of several
-- columns, functions of every shape, and names whose order is not that of their bytes. Loaded after both by a superuser.
create schema names;
create type names.point_of as (x numeric, seen timestamptz);
create domain names.labels as text[];
create domain names.certain as jsonb not null;

create table names.thing (
  id int primary key,
  "größe" int,
  grob int,
  "Zahl" int,
  zahl int,
  "äpfel" int,
  "a-b" text,
  a_b text,
  "9lives" text,
  "with ""quotes""" text,
  states shop.state[] not null default '{}',
  places shop.place[],
  at names.point_of,
  labels names.labels,
  sure names.certain,
  documents jsonb[] not null,
  address inet,
  words tsvector,
  span int4range,
  twice int generated always as (zahl * 2) virtual
);
create table names.pair (a int, b int, note text, primary key (a, b));
create table names.of_pair (a int, b int, foreign key (a, b) references names.pair, unique (a, b));
create table names.of_pair_turned (b int, a int, foreign key (b, a) references names.pair (b, a), primary key (a, b));
create table names.many_of_pair (id int primary key, a int, b int, foreign key (a, b) references names.pair);
create table names.log (id int, thing int references names.thing, day date, primary key (id, day)) partition by range (day);
create table names.log_2026 partition of names.log for values from ('2026-01-01') to ('2027-01-01');
create table names.friends (one int references names.thing, other int references names.thing, primary key (one, other));
create view names.parcel as select id, sender_id from shop.parcel;
create view names.twice_shown as select id as first, id as second, one, other from names.friends join names.thing on id = one;
create view names.pairs as select a, b from names.many_of_pair;
create materialized view names.kept as select id, zahl from names.thing;
create view names.taking as select count(*) as n, max(zahl) as most from names.thing;
create function names.take() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger take instead of update on names.taking for each row execute function names.take();
create view names.ruled as select id, zahl from names.thing where zahl > 0 limit 5;
create rule add as on insert to names.ruled do instead insert into names.thing (id, documents) values (new.id, '{}');

create extension if not exists postgres_fdw schema names;
create server names_far foreign data wrapper postgres_fdw;
create foreign table names.far (id int not null, label text) server names_far;

create function names.label_of(names.far) returns text language sql as $$ select 'x' $$;
create function names.label_of(thing names.thing) returns text language sql as $$ select 'x' $$;
create function names.zahl(names.thing) returns text language sql as $$ select 'a column of this name is there' $$;
create function names.newest(names.kept) returns setof names.thing rows 1 language sql as $$ select * from names.thing $$;
create function names.far_ones() returns setof names.far language sql as $$ select * from names.far $$;
create function names.parcels(p names.parcel) returns setof shop.parcel language sql as $$ select * from shop.parcel $$;
create function names.of_parcel(p shop.parcel) returns names.parcel language sql as $$ select 1, 2 $$;
create function names.one_word() returns setof text rows 1 language sql as $$ select 'x' $$;
create function names.one_thing() returns setof names.thing rows 1 language sql as $$ select * from names.thing $$;
create function names.point() returns names.point_of language sql as $$ select row(1, now())::names.point_of $$;
create function names.points() returns setof names.point_of language sql as $$ select 1::numeric, now() $$;
create function names.anything() returns record language sql as $$ select 1, 2 $$;
create function names.nothing() returns void language sql as $$ select $$;
create function names.moods() returns shop.state[] language sql as $$ select null::shop.state[] $$;
create function names.out_two(a int, out b int, out c text) language sql as $$ select 1, 'x' $$;
create function names.both(inout a int) language sql as $$ select 1 $$;
create function names.many(variadic ids int[]) returns int language sql as $$ select 1 $$;
create function names.given(jsonb) returns jsonb language sql as $$ select $1 $$;
create function names.maybe() returns int language sql as $$ select 1 $$;
create function names.maybe(text default 'x') returns int language sql as $$ select 1 $$;
create function names.unnamed(int, int) returns int language sql as $$ select 1 $$;
create function names."Äste"() returns int language sql as $$ select 1 $$;
create function names.aste() returns int language sql as $$ select 1 $$;
create function names.defaults(a int, b text default 'x', c names.labels default '{}', out d int) language sql as $$ select 1 $$;
create procedure names.run() language sql as $$ select $$;
create aggregate names.total(int) (sfunc = int4pl, stype = int, initcond = '0');
