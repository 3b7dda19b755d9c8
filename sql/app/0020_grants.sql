-- Who may do what at all, before row level security decides which rows. Nothing is open by default.

do $$
declare t record;
begin
  for t in select c.oid::regclass as name, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'v', 'S') and pg_get_userbyid(c.relowner) = current_user
  loop
    execute format('revoke all on %s %s from public, anon, authenticated, service_role', case when t.relkind = 'S' then 'sequence' else 'table' end, t.name);
    if t.relkind <> 'S' then
      execute format('grant %s on table %s to service_role', case when t.relkind = 'r' then 'select, insert, update, delete' else 'select' end, t.name);
    end if;
  end loop;
  for t in select p.oid::regprocedure as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('public', 'private', 'functions') and pg_get_userbyid(p.proowner) = current_user and p.prokind = 'f'
  loop
    execute format('revoke all on function %s from public, anon, authenticated, service_role', t.name);
  end loop;
end $$;

-- service_role bypasses row level security as on Supabase; where the host cannot give it BYPASSRLS, these policies stand in
do $$
declare t regclass;
begin
  for t in select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r' and pg_get_userbyid(c.relowner) = current_user and c.oid <> 'public.profile_identities'::regclass
  loop
    execute format('create policy "service role" on %s to service_role using (true) with check (true)', t);
  end loop;
end $$;

-- ID numbers are their owner's alone
revoke all on public.profile_identities from service_role;

grant select on public.nonprofits, public.categories, public.denial_reasons to anon;

grant select, insert, update on public.user_roles to authenticated;
grant select, insert, update on public.profiles to authenticated;
grant select, insert, update, delete on public.profile_identities to authenticated;
grant select, insert, update on public.nonprofits to authenticated;
grant select, update on public.nonprofit_settings to authenticated;
grant select, insert, update, delete on public.nonprofit_team_members to authenticated;
grant select, insert, update, delete on public.categories to authenticated;
grant select on public.denial_reasons to authenticated;
grant select, insert, update, delete on public.requests to authenticated;
grant select on public.request_nonprofits, public.request_events to authenticated;
grant select, insert, delete on public.request_documents to authenticated;
grant select, update, delete on public.notifications to authenticated;
grant select on public.budget_allocations, public.budget_transactions, public.donations to authenticated;
grant select on public.donor_messages to authenticated;
grant select, update on public.donor_message_recipients, public.donor_message_replies to authenticated;
grant select on public.my_requests, public.incoming_requests, public.approved_grants, public.my_donor_messages, public.donor_inbox to authenticated;

-- open to all: each checks its own input and counts its uses
grant execute on function functions."get-categories"(jsonb) to anon, authenticated, service_role;
grant execute on function public.me(), public.submit_request(jsonb), public.request_status(text),
  public.create_guest_upload_slot(uuid, text, text, bigint), public.remove_guest_upload_slot(uuid),
  public.send_address_code(text), public.check_address_code(text, text), public.team_invitation(text), public.pledge_donation(jsonb),
  public.subscribe_newsletter(text), public.confirm_newsletter(text), public.unsubscribe(text)
  to anon, authenticated, service_role;

-- signed in: each names the caller and checks role and state itself
grant execute on function public.my_profile(), public.save_profile(jsonb), public.select_nonprofit(text), public.mark_all_notifications_read(),
  public.claim_guest_requests(), public.save_draft(jsonb), public.request_detail(text), public.withdraw_request(text), public.resubmit_request(text),
  public.answer_request_info(text, text), public.requester_dashboard(),
  public.incoming_request_counts(text), public.open_request(text, text), public.approve_request(text, text, numeric, boolean),
  public.deny_request(text, text, text, text), public.request_more_info(text, text, text), public.nonprofit_dashboard(text),
  public.create_organization(jsonb), public.resend_team_invitation(text), public.accept_team_invitation(text), public.leave_organization(text),
  public.close_organization(text), public.set_second_approval(text, numeric),
  public.nonprofit_budget(text), public.set_budget_allocation(text, text, numeric),
  public.record_donation(text, numeric, text, text, timestamptz, uuid), public.receive_donation(text), public.cancel_donation(text),
  public.record_payout(text, numeric, text),
  public.donor_dashboard(), public.active_donor_count(text), public.send_donor_message(text, text, text, uuid),
  public.reply_to_donor_message(text, text), public.mark_donor_message_read(text)
  to authenticated, service_role;

-- computed fields
grant execute on function public.age(public.profiles), public."needsMoreProof"(public.requests), public."pendingNotes"(public.requests),
  public."denialReason"(public.requests), public.documents(public.requests) to authenticated, service_role;

grant execute on function public.sweep_guest_files() to service_role;

-- helpers that policies, constraints, views and invoker triggers run as the caller; none is reachable through the API
grant execute on function private.valid_email(text), private.clean(text), private.amount_number(text), private.is_client(), private.client_id(text), private.fail(int, text, text, jsonb),
  private.setting(text), private.touch(),
  private.my_organizations(text[], boolean), private.my_staff_organizations(), private.my_managed_organizations(), private.my_admin_organizations(),
  private.is_staff_somewhere(), private.staff_may_see(text), private.staff_may_see_person(text), private.owns_request(text),
  private.may_upload_document(text), private.may_remove_document(text), private.guest_slot_is_open(text),
  private.document_object_exists(text), private.lock_request(text), private.received_message(text), private.manages_message(text),
  private.status_for_part(text, text)
  to anon, authenticated, service_role;

-- row level security everywhere; a table that lacks it stops the migration
do $$
declare bad text;
begin
  select string_agg(c.oid::regclass::text, ', ') into bad from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('public', 'private') and c.relkind in ('r', 'p') and not c.relrowsecurity and pg_get_userbyid(c.relowner) = current_user;
  if bad is not null then raise exception 'no row level security on %', bad; end if;
end $$;

-- the API's schema cache, where a server listens
notify pgrst, 'reload schema';
