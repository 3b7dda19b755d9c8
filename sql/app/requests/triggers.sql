-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger guard before insert or update on public.requests for each row execute function private.guard_request();

create or replace trigger hold_organization before insert on public.request_nonprofits
  for each row when (new.state = 'open') execute function private.hold_organization();

create or replace trigger clean_names before insert or update of title, first_name, last_name, city on public.requests
  for each row execute function private.clean_names('title', 'first_name', 'last_name', 'city');
