-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger guard before update on public.donor_message_replies for each row execute function private.guard_reply();

create or replace trigger guard before update on public.donor_message_recipients for each row execute function private.guard_receipt();
