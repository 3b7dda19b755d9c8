-- Files are judged by what arrived and not by what was announced: the storage server tells what the bytes show
-- (`storage.detected_mimetype`), the row says how many there are. The hourly sweep is the server's to call.

-- Types that differ in name alone.
create function private.plain_type(p text) returns text
language sql immutable set search_path = '' as $$
  select case t when 'image/jpg' then 'image/jpeg' when 'image/pjpeg' then 'image/jpeg' when 'image/heif' then 'image/heic' else t end
  from (select lower(btrim(split_part(p, ';', 1)))) x (t)
$$;

-- Runs where a file lands, not at the trial of permission before it (the setting is then empty) and not for rows that the
-- owner of the database writes.
create function private.check_landed_file() returns trigger
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
create trigger check_landed_file before insert or update of version on storage.objects
  for each row when (new.bucket_id in ('request-documents', 'profile-photos', 'logos')) execute function private.check_landed_file();

-- What is known of a stored document of the caller's own request: {mimetype, size}; null when it did not arrive.
create function private.own_document_facts(p_path text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select coalesce(o.metadata, '{}'::jsonb) from storage.objects o
  where o.bucket_id = 'request-documents' and o.name = p_path and private.owns_request(split_part(p_path, '/', 1))
$$;

-- Documents: up to 5 while a draft, up to 10 more while proof is asked for; the file must be there, and type and size are its own.
create or replace function private.guard_document() returns trigger
language plpgsql set search_path = '' as $$
declare r record; n int; facts jsonb;
begin
  if not private.is_client() then return new; end if;
  select x.id, x.user_id, x.status, x.needs_more_proof into r from public.requests x where x.id = new.request_id;  -- under the caller's policies
  if r.id is null or r.user_id is distinct from auth.uid() then
    perform private.fail(404, 'request_not_found', 'The requested aid request could not be found.');
  end if;
  new.uploaded_by := auth.uid(); new.created_at := now();
  if r.status = 'draft' then new.kind := 'submission';
  elsif r.status = 'pending' and r.needs_more_proof then new.kind := 'additional';
  else
    perform private.fail(409, 'documents_not_wanted', 'This request does not take documents now.', jsonb_build_object('status', r.status));
  end if;
  perform private.lock_request(new.request_id);
  select count(*) into n from public.request_documents d where d.request_id = new.request_id and d.kind = new.kind;
  if n >= (case new.kind when 'submission' then 5 else 10 end) then
    perform private.fail(422, 'too_many_files', 'You can only upload a maximum of ' || case new.kind when 'submission' then 5 else 10 end || ' files.',
      jsonb_build_object('max', case new.kind when 'submission' then 5 else 10 end));
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

revoke all on function private.plain_type(text), private.check_landed_file(), private.own_document_facts(text) from public, anon, authenticated, service_role;
grant execute on function private.plain_type(text), private.own_document_facts(text) to authenticated, service_role;

insert into ferrobase.hourly (function) values ('public.sweep_guest_files') on conflict do nothing;
