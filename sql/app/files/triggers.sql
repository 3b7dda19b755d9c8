-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger guard before insert on public.request_documents for each row execute function private.guard_document();

create or replace trigger keep_documents before update of version on storage.objects
  for each row when (old.bucket_id = 'request-documents') execute function private.keep_documents();
create or replace trigger check_landed_file before insert or update of version on storage.objects
  for each row when (new.bucket_id in ('request-documents', 'profile-photos', 'logos')) execute function private.check_landed_file();
create or replace trigger check_picture_folder before insert on storage.objects
  for each row when (new.bucket_id in ('profile-photos', 'logos')) execute function private.check_picture_folder();
create or replace trigger check_file_quota before insert on storage.objects
  for each row when (new.bucket_id = 'request-documents' and new.owner_id is not null) execute function private.check_file_quota();
create or replace trigger check_upload_begun before insert on _supavisor.resumable_uploads
  for each row execute function private.check_upload_begun();
create or replace trigger check_upload_begun before insert on storage.s3_multipart_uploads
  for each row execute function private.check_upload_begun();
