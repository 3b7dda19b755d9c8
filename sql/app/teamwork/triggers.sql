-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger guard before insert or update on public.saved_replies for each row execute function private.guard_saved_reply();
create or replace trigger touch before update on public.saved_replies for each row execute function private.touch();
