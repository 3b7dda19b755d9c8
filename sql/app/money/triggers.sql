-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger touch before update on public.budget_allocations for each row execute function private.touch();

create or replace trigger payout_within_grant before insert on public.budget_transactions
  for each row when (new.type = 'Payout') execute function private.guard_payout();
create or replace trigger guard_own_transaction before insert on public.budget_transactions
  for each row when (new.request_id is not null and new.created_by is not null) execute function private.guard_own_transaction();
create or replace trigger add_payout after insert or delete or update of type, amount, request_id on public.budget_transactions
  for each row execute function private.add_payout();
create or replace trigger tally_added after insert on public.budget_transactions referencing new table as added for each statement execute function private.tally_money_added();
create or replace trigger tally_removed after delete on public.budget_transactions referencing old table as gone for each statement execute function private.tally_money_removed();
create or replace trigger tally_gone after update on public.budget_transactions referencing old table as gone for each statement execute function private.tally_money_removed();
create or replace trigger tally_come after update on public.budget_transactions referencing new table as added for each statement execute function private.tally_money_added();
