-- The order of an organization's donations: pledges that wait for an answer, then all others by their date. A cancelled pledge has no
-- date of receipt, but waits for nothing.

alter table public.donations
  add column waits boolean not null generated always as (status = 'pledged') stored,
  add column dated timestamptz not null generated always as (coalesce(received_at, pledged_at)) stored;
create index donations_in_order on public.donations (nonprofit_id, waits desc, dated desc, id);
