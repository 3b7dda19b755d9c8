-- Documents of requests and pictures of people and organizations: who may upload and see them, and which files are
-- accepted. Names: request-documents/<request id>/<file> or guest/<slot id>.<ext>, profile-photos/<user id>/<file>,
-- logos/<nonprofit id>/<file>.

-- ----------------------------------------------------------------------------------------------------------- documents

-- The owner may upload while the request is a draft (5 documents) or waits for proof (10 per question). A few spare slots
-- cover failed uploads.
create or replace function private.may_upload_document(p_request_id text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r where r.id = p_request_id and r.user_id = auth.uid()
      and (r.status = 'draft' or (r.status = 'pending' and r.needs_more_proof)))
    and (select count(*) from storage.objects o
      where o.bucket_id = 'request-documents' and o.name collate "C" >= p_request_id || '/' and o.name collate "C" < p_request_id || '0') < 30
$$;

-- A file that belongs to a sent request stays.
create or replace function private.may_remove_document(p_name text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.requests r where r.id = split_part(p_name, '/', 1) and r.user_id = auth.uid())
    and not exists (select 1 from public.request_documents d join public.requests r on r.id = d.request_id
      where d.path = p_name and r.status <> 'draft')
$$;

-- Whether the caller may read a stored document: their own request's, or one that their organization may see.
create or replace function private.may_read_document(p_path text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from public.request_documents d where d.path = p_path and (private.owns_request(d.request_id) or private.staff_may_see(d.request_id)))
    or (split_part(p_path, '/', 1) <> 'guest' and private.owns_request(split_part(p_path, '/', 1)))
$$;

create or replace function private.document_object_exists(p_path text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from storage.objects o where o.bucket_id = 'request-documents' and o.name = p_path)
$$;

-- Type and size of a stored document of the caller's own request: {mimetype, size}; null if it is missing.
create or replace function private.own_document_facts(p_path text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select coalesce(o.metadata, '{}'::jsonb) from storage.objects o
  where o.bucket_id = 'request-documents' and o.name = p_path and private.owns_request(split_part(p_path, '/', 1))
$$;

-- Refuses documents beyond ten since staff asked last, or beyond thirty with the request, as in its folder. p_coming: those
-- not stored yet.
create or replace function private.require_proof_places(p_request_id text, p_coming int) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  most constant int := 10;
  most_in_all constant int := 30;
  asked timestamptz; since int; in_all int;
begin
  select max(e.created_at) into asked from public.request_events e where e.request_id = p_request_id and e.type = 'info_requested';
  select count(*) filter (where d.kind = 'additional' and d.created_at > coalesce(asked, '-infinity')), count(*) into since, in_all
  from public.request_documents d where d.request_id = p_request_id;
  if since + p_coming > most then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of ' || most || ' files.', jsonb_build_object('max', most));
  end if;
  if in_all + p_coming > most_in_all then
    perform private.fail(422, 'too_many_files', 'There are too many files with this request.', jsonb_build_object('max', most_in_all));
  end if;
end $$;

-- Documents: up to 5 while a draft, up to 10 per question while proof is asked for; the file must exist, and type and size
-- are taken from it.
create or replace function private.guard_document() returns trigger
language plpgsql set search_path = '' as $$
declare r record; facts jsonb;
begin
  if not private.is_client() then return new; end if;
  select x.id, x.user_id, x.status, x.needs_more_proof into r from public.requests x where x.id = new.request_id;  -- under the caller's policies
  if r.id is null or r.user_id is distinct from auth.uid() then
    perform private.fail(404, 'request_not_found', 'The requested aid request could not be found.');
  end if;
  new.uploaded_by := auth.uid(); new.created_at := clock_timestamp();  -- compared with the time of the question
  if r.status = 'draft' then new.kind := 'submission';
  elsif r.status = 'pending' and r.needs_more_proof then new.kind := 'additional';
  else
    perform private.fail(409, 'documents_not_wanted', 'This request does not take documents now.', jsonb_build_object('status', r.status));
  end if;
  perform private.lock_request(new.request_id);
  if new.kind = 'additional' then
    perform private.require_proof_places(new.request_id, 1);
  elsif (select count(*) from public.request_documents d where d.request_id = new.request_id and d.kind = 'submission') >= 5 then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of 5 files.', '{"max": 5}');
  end if;
  if split_part(new.path, '/', 1) <> new.request_id then
    perform private.fail(422, 'document_path', 'The file is not in this request''s folder.');
  end if;
  facts := private.own_document_facts(new.path);
  if facts is null then
    perform private.fail(422, 'document_missing', 'The file did not arrive. Please upload it again.', jsonb_build_object('name', new.name));
  end if;
  new.mime_type := coalesce(private.plain_type(facts ->> 'mimetype'), new.mime_type);
  new.size_bytes := coalesce((facts ->> 'size')::bigint, new.size_bytes);
  if new.mime_type not in ('application/pdf', 'image/jpeg', 'image/png', 'application/msword',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document') then
    perform private.fail(422, 'file_type', new.name || ' is not an accepted file type.', jsonb_build_object('name', new.name));
  end if;
  if new.size_bytes not between 1 and 10485760 then
    perform private.fail(422, 'file_too_large', new.name || ' exceeds the maximum file size of 10MB.', jsonb_build_object('name', new.name));
  end if;
  return new;
end $$;

-- Submitted documents are never overwritten, not even by a signed upload link with overwrite, whose writes are not
-- checked by policies. Each upload has its own name.
create or replace function private.keep_documents() returns trigger language plpgsql set search_path = '' as $$
begin
  raise exception using errcode = '42501', message = 'A document that was handed in cannot be replaced', hint = 'upload_under_a_new_name';
end $$;

-- ---------------------------------------------------------------------------------------------- upload slots of guests

create or replace function private.guest_slot_is_open(p_name text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select 1 from private.guest_upload_slots s where s.path = p_name and s.request_id is null and s.expires_at > now())
$$;

create or replace function public.create_guest_upload_slot(key uuid, name text, mime_type text, size_bytes bigint) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  who text := private.client_network();
  file text := left(private.clean(create_guest_upload_slot.name), 255);
  new_id uuid := gen_random_uuid();
  ext text;
  s private.guest_upload_slots;
  -- 5 with a request, 10 with each answer after a mailed code
  most int := case when exists (select 1 from private.request_access a where a.upload_key = create_guest_upload_slot.key and a.expires_at > now()) then 10 else 5 end;
begin
  if create_guest_upload_slot.key is null or file is null then
    perform private.fail(422, 'validation_failed', 'Please select at least one document to upload.');
  end if;
  ext := case create_guest_upload_slot.mime_type when 'application/pdf' then 'pdf' when 'image/jpeg' then 'jpg' when 'image/png' then 'png'
    when 'application/msword' then 'doc' when 'application/vnd.openxmlformats-officedocument.wordprocessingml.document' then 'docx' end;
  if ext is null then perform private.fail(422, 'file_type', file || ' is not an accepted file type.', jsonb_build_object('name', file)); end if;
  if coalesce(create_guest_upload_slot.size_bytes, 0) not between 1 and 10485760 then
    perform private.fail(422, 'file_too_large', file || ' exceeds the maximum file size of 10MB.', jsonb_build_object('name', file));
  end if;
  perform private.require_rate('slots:' || who, 30, interval '1 hour');
  perform pg_advisory_xact_lock(hashtextextended('slots:' || create_guest_upload_slot.key, 0));
  if exists (select 1 from public.requests r where r.submit_key = create_guest_upload_slot.key) then
    perform private.fail(409, 'request_already_decided', 'This request has already been submitted.', '{"status": "pending"}');
  end if;
  if (select count(*) from private.guest_upload_slots x where x.submit_key = create_guest_upload_slot.key and x.request_id is null) >= most then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of ' || most || ' files.', jsonb_build_object('max', most));
  end if;
  insert into private.guest_upload_slots (id, submit_key, path, name, mime_type, size_bytes, address)
  values (new_id, create_guest_upload_slot.key, 'guest/' || private.new_token() || '.' || ext, file, create_guest_upload_slot.mime_type,
    create_guest_upload_slot.size_bytes, who)
  returning * into s;
  return jsonb_build_object('id', s.id, 'bucket', 'request-documents', 'path', s.path, 'expires_at', s.expires_at);
end $$;

-- Deletes the slot and its file; the id is the secret.
create or replace function public.remove_guest_upload_slot(id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare gone text;
begin
  delete from private.guest_upload_slots s where s.id = remove_guest_upload_slot.id and s.request_id is null returning s.path into gone;
  if gone is null then return false; end if;
  perform set_config('storage.allow_delete_query', 'true', true);
  delete from storage.objects o where o.bucket_id = 'request-documents' and o.name = gone;
  perform set_config('storage.allow_delete_query', 'false', true);
  return true;
end $$;

-- Deletes files without a document's row after six hours, whether or not their request exists. Guests' files and
-- unfinished S3 uploads have 24 hours (TUS uploads expire by themselves).
create or replace function public.sweep_guest_files() returns setof text
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform set_config('storage.allow_delete_query', 'true', true);
  return query
    delete from storage.objects o
    where o.bucket_id = 'request-documents'
      and o.created_at < now() - case when o.name like 'guest/%' then interval '24 hours' else interval '6 hours' end
      and not exists (select 1 from public.request_documents d where d.path = o.name)
    returning o.name;
  delete from private.guest_upload_slots s where s.request_id is null and s.created_at < now() - interval '24 hours';
  delete from storage.s3_multipart_uploads u
  where u.bucket_id in ('request-documents', 'profile-photos', 'logos') and u.created_at < now() - interval '24 hours';
  perform set_config('storage.allow_delete_query', 'false', true);
end $$;

-- ------------------------------------------------------------------------------------------------------ accepted files

-- Normalizes types that differ only in name.
create or replace function private.plain_type(p text) returns text
language sql immutable set search_path = '' as $$
  select case t when 'image/jpg' then 'image/jpeg' when 'image/pjpeg' then 'image/jpeg' when 'image/heif' then 'image/heic' else t end
  from (select lower(btrim(split_part(p, ';', 1)))) x (t)
$$;

-- Runs when a file is stored, but not in the permission check before it (the setting is then empty), nor for rows
-- written by the database's owner.
create or replace function private.check_landed_file() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  seen text := nullif(current_setting('storage.detected_mimetype', true), '');
  declared text := private.plain_type(new.metadata ->> 'mimetype');
  size bigint := (new.metadata ->> 'size')::bigint;
  slot private.guest_upload_slots;
  file text := 'This file';
begin
  if seen is null then return new; end if;
  if new.bucket_id = 'request-documents' and new.name like 'guest/%' then
    select * into slot from private.guest_upload_slots s where s.path = new.name and s.request_id is null and s.expires_at > now() for update;
    if not found then perform private.fail(410, 'slot_gone', 'There is no place for this file any more. Please choose it again.'); end if;
    file := slot.name;
  end if;
  if private.plain_type(seen) is distinct from declared or (slot.id is not null and declared is distinct from private.plain_type(slot.mime_type)) then
    perform private.fail(415, 'file_type', file || ' is not an accepted file type.');
  end if;
  if coalesce(size, 0) < 1 then
    perform private.fail(422, 'file_empty', file || ' is empty.');
  end if;
  if size > (case new.bucket_id when 'logos' then 5242880 else 10485760 end) then
    perform private.fail(413, 'file_too_large', file || ' exceeds the maximum file size of ' || case new.bucket_id when 'logos' then '5MB.' else '10MB.' end);
  end if;
  if slot.id is not null then
    update private.guest_upload_slots s set size_bytes = size where s.id = slot.id;
  end if;
  return new;
end $$;

-- --------------------------------------------------------------------------------------------------------- quotas

-- Unfinished uploads in parts (TUS, S3). Each counts as a file from its first request on; its announced or received
-- bytes are within the bucket's limit. `p_but`: the name of the file being stored, whose own upload is excluded.
create or replace function private.under_way(p_bucket text, p_folder text, p_but text) returns bigint
language sql stable security definer set search_path = '' as $$
  select count(*) from ferrobase.uploads_under_way u
  where u.bucket_id = p_bucket and starts_with(u.key, p_folder) and u.key is distinct from p_but
$$;

-- Pages delete the previous picture when replacing it; callers that only add reach this limit.
create or replace function private.hold_picture_place(p_bucket text, p_name text, p_but text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  most constant int := 10;
  folder text := split_part(p_name, '/', 1) || '/';
begin
  perform pg_advisory_xact_lock(hashtextextended('pictures:' || p_bucket || ':' || folder, 0));
  if private.under_way(p_bucket, folder, p_but) + (select count(*) from storage.objects o
    where o.bucket_id = p_bucket and starts_with(o.name collate "C", folder)) >= most then
    perform private.fail(409, 'too_many_pictures', 'There are ' || most || ' pictures already. Please remove one first.', jsonb_build_object('max', most));
  end if;
end $$;

-- Twelve drafts with five documents each, and per request's folder as many as may_upload_document allows. Uploads of a
-- person are counted one after the other, because any number may have been permitted before the first begins or is
-- stored.
create or replace function private.hold_document_place(p_name text, p_owner text, p_but text) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  most constant int := 60;
  most_of_one constant int := 30;
  folder text := split_part(p_name, '/', 1) || '/';
  n bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended('files of ' || p_owner, 0));
  select count(*) into n from public.requests r
  join storage.objects o on o.bucket_id = 'request-documents'
    and o.name collate "C" >= r.id || '/' and o.name collate "C" < r.id || '0'
  where r.user_id::text = p_owner and r.status = 'draft';
  n := n + (select count(*) from ferrobase.uploads_under_way u
    where u.bucket_id = 'request-documents' and u.owner_id = p_owner and u.key is distinct from p_but);
  if n >= most then
    perform private.fail(409, 'too_many_files', 'You have too many files in unsent requests. Please remove some or send a request first.', jsonb_build_object('max', most));
  end if;
  n := private.under_way('request-documents', folder, p_but) + (select count(*) from storage.objects o
    where o.bucket_id = 'request-documents' and starts_with(o.name collate "C", folder));
  if n >= most_of_one then
    perform private.fail(409, 'too_many_files', 'There are too many files with this request. Please remove some.', jsonb_build_object('max', most_of_one));
  end if;
end $$;

-- Runs when a file is stored, not in the permission check before it.
create or replace function private.check_picture_folder() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if nullif(current_setting('storage.detected_mimetype', true), '') is not null then
    perform private.hold_picture_place(new.bucket_id, new.name, new.name);
  end if;
  return new;
end $$;

create or replace function private.check_file_quota() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  if nullif(current_setting('storage.detected_mimetype', true), '') is not null then
    perform private.hold_document_place(new.name, new.owner_id, new.name);
  end if;
  return new;
end $$;

-- Runs when an upload in parts begins. A guest's slot may be tried a few times, because its link is the only
-- permission.
create or replace function private.check_upload_begun() returns trigger
language plpgsql security definer set search_path = '' as $$
declare most constant int := 3;
begin
  if new.bucket_id in ('profile-photos', 'logos') then
    perform private.hold_picture_place(new.bucket_id, new.key, null);
  elsif new.bucket_id = 'request-documents' and new.owner_id is not null then
    perform private.hold_document_place(new.key, new.owner_id, null);
  elsif new.bucket_id = 'request-documents' then
    perform pg_advisory_xact_lock(hashtextextended('uploads to ' || new.key, 0));
    if (select count(*) from ferrobase.uploads_under_way u where u.bucket_id = new.bucket_id and u.key = new.key) >= most then
      perform private.fail(409, 'too_many_files', 'This file is being uploaded already. Please wait for it or choose the file again.', jsonb_build_object('max', most));
    end if;
  end if;
  return new;
end $$;

-- Deletes the files of requests, and the places that guests' files had, which keep names and addresses; the server removes the bytes of
-- deleted rows. A file that another request names stays: a request that is sent again shares its files with the first.
create or replace function private.remove_documents(p_requests text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform set_config('storage.allow_delete_query', 'true', true);
  with gone as (delete from public.request_documents d where d.request_id = any (p_requests) returning d.path)
  delete from storage.objects o using gone where o.bucket_id = 'request-documents' and o.name = gone.path
    and not exists (select 1 from public.request_documents d where d.path = gone.path and d.request_id <> all (p_requests));
  perform set_config('storage.allow_delete_query', 'false', true);
  delete from private.guest_upload_slots s where s.request_id = any (p_requests);
end $$;
