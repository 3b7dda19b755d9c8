-- Privileges. rights.sql in the folder above revokes everything first.

grant select on public.denial_reasons to anon, authenticated;
grant select, insert, update, delete on public.requests to authenticated;
grant select on public.my_requests to authenticated;
-- Readable columns: not the staff member who did something.
grant select (request_id, nonprofit_id, state, submitted_at, opened_at, acted_at, reason, reason_code) on public.request_nonprofits to authenticated;
grant select (id, request_id, type, actor, nonprofit_id, note, amount, for_requester, created_at) on public.request_events to authenticated;

-- For everybody. Each function checks its input and is rate limited.
grant execute on function
  public.submit_request(jsonb), public.request_status(text), public.send_request_code(text, text),
  public.check_request_code(text, text), public.end_request_access(text), public.request_detail(text, text),
  public.correct_request(text, jsonb, text), public.withdraw_request(text, text),
  public.answer_request_info(text, text, text, jsonb)
  to anon, authenticated, service_role;

-- Helpers called by policies, constraints, views and invoker triggers as any caller; not reachable through the API.
grant execute on function
  private.owns_request(text), private.staff_may_see(text), private.staff_may_see_person(text), private.lock_request(text),
  private.hold_draft_place(uuid)
  to anon, authenticated, service_role;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public."needsMoreProof"(requests), public."pendingNotes"(requests), public."denialReason"(requests),
  public.documents(requests), public.save_draft(jsonb), public.resubmit_request(text), public.requester_dashboard()
  to authenticated, service_role;
