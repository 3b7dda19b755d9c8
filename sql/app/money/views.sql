-- Grants of the caller's organizations, with what has been paid on them.
create or replace view public.approved_grants with (security_barrier = true) as
  select r.id as request_id, r.claimed_by as nonprofit_id, r.request_number, r.category, concat_ws(' ', r.first_name, r.last_name) as requester_name,
    r.amount_approved as granted, r.amount_paid::numeric as paid, r.amount_approved - r.amount_paid as outstanding, r.decided_at as approved_at
  from public.requests r
  where r.status = 'approved' and r.claimed_by = any (array(select private.my_managed_organizations()));
