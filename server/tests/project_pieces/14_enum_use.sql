insert into dumped (m) values ('happy');
