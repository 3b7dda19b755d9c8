-- An organization's list shows, sorts and searches by one amount: the granted one of its own grants, else the requested one.

alter table public.request_nonprofits rename column amount_requested to amount;
comment on column public.request_nonprofits.amount is
  'What this organization granted, or else what was asked for. What another one granted is not told.';

update public.request_nonprofits p set amount = r.amount_approved
from public.requests r where r.id = p.request_id and p.nonprofit_id = r.claimed_by and r.amount_approved <> coalesce(p.amount, 0);

-- Those whose request another organization granted do not see the person either. The amount is written as `amount_text` does.
update public.request_nonprofits p set search_text = lower(concat_ws(' ', '', r.request_number, r.category,
  case when r.amount_requested is null then 'Not specified' when r.amount_requested = trunc(r.amount_requested) then '$' || trunc(r.amount_requested) else '$' || r.amount_requested end))
from public.requests r where r.id = p.request_id and p.nonprofit_id <> r.claimed_by and r.amount_approved is distinct from r.amount_requested
  and r.amount_approved is not null;
