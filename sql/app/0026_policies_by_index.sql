-- Policies that an index can answer. Several policies of one table are joined by OR, so one that needs a function per row makes the whole
-- table be read. Staff have what open_request gives of a request's timeline and documents, as of the request itself.

drop policy "staff read the timeline" on public.request_events;
drop policy "staff read documents" on public.request_documents;

-- Whether the caller may read a stored document: their own request's, or one that their organization may see.
create function private.may_read_document(p_path text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.request_documents d where d.path = p_path and (private.owns_request(d.request_id) or private.staff_may_see(d.request_id)))
    or (split_part(p_path, '/', 1) <> 'guest' and private.owns_request(split_part(p_path, '/', 1)))
$$;
revoke all on function private.may_read_document(text) from public, anon, authenticated, service_role;
grant execute on function private.may_read_document(text) to authenticated, service_role;
alter policy "documents: read with the request" on storage.objects
  using (bucket_id = 'request-documents' and private.may_read_document(name));

alter policy "staff read their part" on public.request_nonprofits
  using (nonprofit_id = any (array(select private.my_staff_organizations())));
alter policy "members read their organization" on public.nonprofits
  using (admin_user_id = (select auth.uid()) or id = any (array(select private.my_organizations(array['admin', 'manager', 'employee', 'volunteer'], true))));
alter policy "staff read settings" on public.nonprofit_settings using (nonprofit_id = any (array(select private.my_staff_organizations())));
alter policy "managers read the team" on public.nonprofit_team_members using (nonprofit_id = any (array(select private.my_managed_organizations())));
alter policy "managers read allocations" on public.budget_allocations using (nonprofit_id = any (array(select private.my_managed_organizations())));
alter policy "managers read donations" on public.donations using (nonprofit_id = any (array(select private.my_managed_organizations())));
alter policy "managers read transactions" on public.budget_transactions using (nonprofit_id = any (array(select private.my_managed_organizations())));
alter policy "managers read sent messages" on public.donor_messages using (nonprofit_id = any (array(select private.my_managed_organizations())));
alter policy "managers read the inbox" on public.donor_message_replies using (nonprofit_id = any (array(select private.my_managed_organizations())));
-- a donor's messages from one look at what they received
alter policy "donors read what they received" on public.donor_messages
  using (id = any (array(select r.message_id from public.donor_message_recipients r where r.donor_user_id = (select auth.uid()))));
create or replace view public.donor_inbox with (security_invoker = true) as
  select r.id, r.nonprofit_id, r.message_id, r.from_name as "from", r.subject, left(regexp_replace(r.message, '\s+', ' ', 'g'), 140) as preview,
    r.message, r.created_at as date, r.read_at is null as unread
  from public.donor_message_replies r
  where r.nonprofit_id = any (array(select private.my_managed_organizations()));
