create table mixed (id int);
create index concurrently mixed_idx on mixed (id);
insert into mixed values (1);
drop index concurrently mixed_idx;
