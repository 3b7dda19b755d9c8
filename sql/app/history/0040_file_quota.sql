-- Files that belong to no sent request: a limit per person, and an end within hours. Per draft the policies count already.

-- Twelve drafts with five papers each. Counted where the file lands, one upload of a person after the other, because any
-- number of uploads may have been permitted before the first of them lands.
create function private.check_file_quota() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  most constant int := 60;
  n int;
begin
  if nullif(current_setting('storage.detected_mimetype', true), '') is null then return new; end if;
  perform pg_advisory_xact_lock(hashtextextended('files of ' || new.owner_id, 0));
  select count(*) into n from public.requests r
  join storage.objects o on o.bucket_id = 'request-documents'
    and o.name collate "C" >= r.id || '/' and o.name collate "C" < r.id || '0'
  where r.user_id::text = new.owner_id and r.status = 'draft';
  if n >= most then
    perform private.fail(409, 'too_many_files', 'You have too many files in unsent requests. Please remove some or send a request first.', jsonb_build_object('max', most));
  end if;
  return new;
end $$;
create trigger check_file_quota before insert on storage.objects
  for each row when (new.bucket_id = 'request-documents' and new.owner_id is not null) execute function private.check_file_quota();
revoke all on function private.check_file_quota() from public, anon, authenticated, service_role;

-- As before, and: a file without a document's row goes after six hours whether its request is there or not. Guests' files
-- have their 24 hours.
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
  perform set_config('storage.allow_delete_query', 'false', true);
end $$;
