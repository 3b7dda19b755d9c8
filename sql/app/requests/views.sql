-- The caller's sent requests, ready to list. Runs under the caller's policies.
create or replace view public.my_requests with (security_invoker = true) as
  select r.id, r.request_number, r.title, r.description, r.category, r.category_id, r.amount, r.amount_requested, r.amount_approved,
    r.status, r.needs_more_proof, r.pending_notes, r.denial_reason, r.nonprofits,
    array(select private.organization_name(p.nonprofit_id) from public.request_nonprofits p
          where p.request_id = r.id order by array_position(r.nonprofits, p.nonprofit_id)) as nonprofit_names,
    private.organization_name(r.claimed_by) as claimed_by_name,
    r.submitted_at, r.decided_at, r.updated_at,
    lower(concat_ws(' ', '', r.request_number, r.category, r.title, r.description)) as search_text
  from public.requests r
  where r.user_id = (select auth.uid()) and r.status <> 'draft';
