-- Triggers: see functions.sql. Those of a table fire in the order of their names.

-- Fires after hold_organization: the triggers of a table fire in the order of their names.
create or replace trigger write_line before insert or update of state, opened_at on public.request_nonprofits
  for each row execute function private.write_line();

create or replace trigger write_lines after update on public.requests for each row
  when (old.status <> 'draft' and (old.status, old.category, old.amount_requested, old.amount_approved, old.needs_more_proof, old.first_name, old.last_name, old.claimed_by, old.request_number)
    is distinct from (new.status, new.category, new.amount_requested, new.amount_approved, new.needs_more_proof, new.first_name, new.last_name, new.claimed_by, new.request_number))
  execute function private.write_lines_of_request();

create or replace trigger tally_added after insert on public.request_nonprofits referencing new table as added
  for each statement execute function private.tally_added();
create or replace trigger tally_removed after delete on public.request_nonprofits referencing old table as gone
  for each statement execute function private.tally_removed();
create or replace trigger tally_changed after update on public.request_nonprofits referencing old table as gone new table as added
  for each statement execute function private.tally_changed();
