-- Row level security policies.

create policy "owner reads documents" on public.request_documents for select to authenticated
  using (request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()))));
create policy "owner adds documents" on public.request_documents for insert to authenticated
  with check (private.owns_request(request_id));
create policy "owner removes documents of a draft" on public.request_documents for delete to authenticated
  using (request_id = any (array(select r.id from public.requests r where r.user_id = (select auth.uid()) and r.status = 'draft')));

create policy "documents: read with the request" on storage.objects for select to authenticated
  using (bucket_id = 'request-documents' and private.may_read_document(name));
create policy "documents: owner uploads" on storage.objects for insert to authenticated
  with check (bucket_id = 'request-documents' and array_length(storage.foldername(name), 1) = 1
    and private.may_upload_document((storage.foldername(name))[1]));
create policy "documents: owner removes unsent" on storage.objects for delete to authenticated
  using (bucket_id = 'request-documents' and private.may_remove_document(name));
-- Signed out: only creating a signed upload URL for the caller's slot.
create policy "documents: guest signs a slot" on storage.objects for insert to anon
  with check (bucket_id = 'request-documents' and (storage.foldername(name))[1] = 'guest'
    and coalesce(current_setting('storage.operation', true), '') = 'storage.object.sign_upload_url'
    and private.guest_slot_is_open(name));
create policy "photos: owner and staff read" on storage.objects for select to authenticated
  using (bucket_id = 'profile-photos' and ((storage.foldername(name))[1] = (select auth.uid())::text
    or ((select private.is_staff_somewhere()) and private.staff_may_see_person((storage.foldername(name))[1]))));
create policy "photos: owner adds" on storage.objects for insert to authenticated
  with check (bucket_id = 'profile-photos' and (storage.foldername(name))[1] = (select auth.uid())::text);
create policy "photos: owner replaces" on storage.objects for update to authenticated
  using (bucket_id = 'profile-photos' and (storage.foldername(name))[1] = (select auth.uid())::text)
  with check (bucket_id = 'profile-photos' and (storage.foldername(name))[1] = (select auth.uid())::text);
create policy "photos: owner removes" on storage.objects for delete to authenticated
  using (bucket_id = 'profile-photos' and (storage.foldername(name))[1] = (select auth.uid())::text);
create policy "logos: admins read" on storage.objects for select to authenticated
  using (bucket_id = 'logos' and (storage.foldername(name))[1] in (select private.my_admin_organizations()));
create policy "logos: admins add" on storage.objects for insert to authenticated
  with check (bucket_id = 'logos' and (storage.foldername(name))[1] in (select private.my_organizations(array['admin'])));
create policy "logos: admins replace" on storage.objects for update to authenticated
  using (bucket_id = 'logos' and (storage.foldername(name))[1] in (select private.my_organizations(array['admin'])))
  with check (bucket_id = 'logos' and (storage.foldername(name))[1] in (select private.my_organizations(array['admin'])));
create policy "logos: admins remove" on storage.objects for delete to authenticated
  using (bucket_id = 'logos' and (storage.foldername(name))[1] in (select private.my_organizations(array['admin'])));
