-- Who may use what; rights.sql of the folder above closes everything first.

grant insert, delete on public.request_documents to authenticated;
-- Not who uploaded it.
grant select (id, request_id, name, path, mime_type, size_bytes, kind, created_at) on public.request_documents to authenticated;

-- Open to everybody: each checks its input and counts its uses.
grant execute on function
  public.create_guest_upload_slot(uuid, text, text, bigint), public.remove_guest_upload_slot(uuid)
  to anon, authenticated, service_role;

-- Helpers called by policies, constraints, views and invoker triggers as any caller; not reachable through the API.
grant execute on function
  private.may_upload_document(text), private.may_remove_document(text), private.guest_slot_is_open(text)
  to anon, authenticated, service_role;

-- Helpers that policies, views and invoker triggers call as the person who is signed in.
grant execute on function
  private.may_read_document(text), private.own_document_facts(text), private.plain_type(text)
  to authenticated, service_role;

-- The server itself.
grant execute on function
  public.sweep_guest_files()
  to service_role;

-- Called every hour.
grant execute on function
  private.document_object_exists(text)
  to service_role;
