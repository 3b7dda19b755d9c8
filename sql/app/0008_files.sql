-- Buckets and who may touch which object. Names: request-documents/<request id>/<file> or guest/<slot id>.<ext>,
-- profile-photos/<user id>/<file>, logos/<nonprofit id>/<file>.

insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types) values
  ('request-documents', 'request-documents', false, 10485760, array['application/pdf', 'image/jpeg', 'image/png',
    'application/msword', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document']),
  -- any photograph; SVG is left out because it can carry script
  ('profile-photos', 'profile-photos', false, 10485760, array['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/avif',
    'image/heic', 'image/heif', 'image/bmp', 'image/tiff']),
  ('logos', 'logos', true, 5242880, array['image/jpeg', 'image/png'])
on conflict (id) do update set public = excluded.public, file_size_limit = excluded.file_size_limit, allowed_mime_types = excluded.allowed_mime_types;

-- The owner may upload while the request is a draft (5 documents) or waits for proof (10 more); a few spare places cover
-- uploads that failed half-way.
create function private.may_upload_document(p_request_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r where r.id = p_request_id and r.user_id = auth.uid()
      and (r.status = 'draft' or (r.status = 'pending' and r.needs_more_proof)))
    and (select count(*) from storage.objects o
      where o.bucket_id = 'request-documents' and o.name collate "C" >= p_request_id || '/' and o.name collate "C" < p_request_id || '0') < 30
$$;

-- A file that belongs to a sent request stays.
create function private.may_remove_document(p_name text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r where r.id = split_part(p_name, '/', 1) and r.user_id = auth.uid())
    and not exists (select 1 from public.request_documents d join public.requests r on r.id = d.request_id
      where d.path = p_name and r.status <> 'draft')
$$;

-- What was handed in is never exchanged: not by an upload link that was signed for overwriting either, whose writes no
-- policy sees. Each upload has a name of its own.
create function private.keep_documents() returns trigger language plpgsql set search_path = '' as $$
begin
  raise exception using errcode = '42501', message = 'A document that was handed in cannot be replaced', hint = 'upload_under_a_new_name';
end $$;
create trigger keep_documents before update of version on storage.objects
  for each row when (old.bucket_id = 'request-documents') execute function private.keep_documents();

create function private.guest_slot_is_open(p_name text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from private.guest_upload_slots s where s.path = p_name and s.request_id is null and s.expires_at > now())
$$;

create policy "documents: read with the request" on storage.objects for select to authenticated
  using (bucket_id = 'request-documents' and (
    exists (select 1 from public.request_documents d where d.path = objects.name)
    or ((storage.foldername(name))[1] <> 'guest' and private.owns_request((storage.foldername(name))[1]))));
create policy "documents: owner uploads" on storage.objects for insert to authenticated
  with check (bucket_id = 'request-documents' and array_length(storage.foldername(name), 1) = 1
    and private.may_upload_document((storage.foldername(name))[1]));
create policy "documents: owner removes unsent" on storage.objects for delete to authenticated
  using (bucket_id = 'request-documents' and private.may_remove_document(name));
-- Signed out: nothing but the making of a signed upload URL for a slot that the caller holds.
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
