-- What a run of the tests begins with, and how it leaves nothing behind without a service key.

create function public.compat_fill(run text) returns void
language sql security definer set search_path = ''
as $$
  insert into public.compat_authors (run, name, born, tags, details, rating, active) values
    (run, 'Ada', '1815-12-10', '{math,code}', '{"city": "London", "kids": 3}', 4.5, true),
    (run, 'Borges', '1899-08-24', '{fiction}', '{"city": "Buenos Aires"}', 4.9, true),
    (run, 'Čapek, Karel', '1890-01-09', '{}', '{}', null, false);
  insert into public.compat_books (run, author_id, title, pages)
  select author.run, author.id, book.title, book.pages
  from public.compat_authors author
  join (values ('Ada', 'Notes', 66), ('Borges', 'Ficciones', 174), ('Borges', 'El Aleph', 146)) book (author, title, pages)
    on book.author = author.name
  where author.run = compat_fill.run;
$$;

-- What people wrote goes with them.
alter table public.compat_notes add foreign key (owner) references auth.users (id) on delete cascade;
alter table public.live_notes add foreign key (owner) references auth.users (id) on delete cascade;

-- Removes the rows and the people of a run, by their invented addresses, and whoever calls it signed in.
create function public.compat_leave(run text) returns void
language plpgsql security definer set search_path = ''
as $$
begin
  if run !~ '^[0-9a-f]{8}$' then
    raise exception 'no run of the tests';
  end if;
  delete from public.compat_authors author where author.run like compat_leave.run || '%';
  delete from auth.users where email like '%-' || run || '-%@compat.test' or id = auth.uid();
end
$$;
