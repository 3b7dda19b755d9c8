-- Requests as each organization sees them; without the person if another nonprofit took it.
create or replace view private.incoming_requests as
  select p.request_id, p.nonprofit_id, r.request_number, r.category, r.category_id,
    private.amount_text(private.amount_for_part(r.amount_requested, r.amount_approved, r.claimed_by, p.nonprofit_id)) as amount, r.amount_requested,
    case when r.claimed_by = p.nonprofit_id then coalesce(r.amount_approved, f.amount) end as amount_approved,
    p.status, p.state as part, p.needs_more_proof, p.opened_at is not null as opened, p.submitted_at, r.updated_at,
    case when p.status in ('pending', 'processing') then floor(extract(epoch from now() - p.submitted_at) / 86400)::int end as waiting_days,
    case when private.part_shows_person(p.state, r.claimed_by, p.nonprofit_id) then concat_ws(' ', r.first_name, r.last_name) end as requester_name,
    p.search_text, coalesce(nullif(m.full_name, ''), m.email) as assigned_to
  from public.request_nonprofits p
  join public.requests r on r.id = p.request_id
  left join private.first_approvals f on f.request_id = r.id
  left join public.nonprofit_team_members m on m.id = p.assigned_to and private.is_staff(m)
  where p.status is not null;

-- Not security_invoker: it also shows requests that the caller may not read in full. Rows are limited to
-- organizations in which the caller is staff, before any other condition is evaluated.
create or replace view public.incoming_requests with (security_barrier = true) as
  select * from private.incoming_requests i where i.nonprofit_id = any (array(select private.my_staff_organizations()));
