-- Privileges. rights.sql in the folder above revokes everything first.

grant select on public.budget_allocations, public.budget_transactions, public.approved_grants to authenticated;
-- All columns except the donor's account.
grant select (id, nonprofit_id, donor_name, donor_email, amount, status, note, pledged_at, received_at, waits, dated) on public.donations to authenticated;

-- For everybody. Each function checks its input and is rate limited.
grant execute on function
  public.pledge_donation(jsonb)
  to anon, authenticated, service_role;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.nonprofit_budget(text), public.set_budget_allocation(text, text, numeric), public.grants_page(text, text, int, int),
  public.record_payout(text, numeric, text, uuid), public.record_donation(text, numeric, text, text, timestamptz, uuid),
  public.receive_donation(text), public.cancel_donation(text), public.donor_dashboard()
  to authenticated, service_role;
