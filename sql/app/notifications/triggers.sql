-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger guard before update on public.notifications for each row execute function private.guard_notification();
