-- Privileges. rights.sql in the folder above revokes everything first.

grant insert, delete on public.request_documents to authenticated;
-- All columns except the uploader.
grant select (id, request_id, name, path, mime_type, size_bytes, kind, created_at) on public.request_documents to authenticated;

-- For everybody. Each function checks its input and is rate limited.
grant execute on function
  public.create_guest_upload_slot(uuid, text, text, bigint), public.remove_guest_upload_slot(uuid)
  to anon, authenticated, service_role;

-- Helpers called by policies, constraints, views and invoker triggers as any caller; not reachable through the API.
grant execute on function
  private.may_upload_document(text), private.may_remove_document(text), private.guest_slot_is_open(text)
  to anon, authenticated, service_role;

-- Helpers that policies, views and invoker triggers call as the signed-in user.
grant execute on function
  private.may_read_document(text), private.own_document_facts(text), private.plain_type(text), private.require_proof_places(text, int)
  to authenticated, service_role;

-- For the server itself.
grant execute on function
  public.sweep_guest_files()
  to service_role;

-- Called hourly.
grant execute on function
  private.document_object_exists(text)
  to service_role;
