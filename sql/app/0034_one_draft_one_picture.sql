-- A draft whose first save lost its answer is the request that its person then sends, not a leftover beside it; and a person's or
-- an organization's folder of pictures stays small.

-- The id of the draft that a client's key names for its person; null when that is no key.
create function private.named_draft(p_user uuid, p_key text) returns text
language sql immutable set search_path = '' as $$
  select md5('draft:' || p_user || ':' || p_key)::uuid::text where p_key ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
$$;

create or replace function public.save_draft(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  uid uuid := private.require_user(); r public.requests;
  draft text := private.clean(input ->> 'id');
  named boolean := false;
begin
  if draft is null then
    draft := private.named_draft(uid, input ->> 'key');
    if draft is not null then
      perform pg_advisory_xact_lock(hashtextextended('draft:' || draft, 0));
      named := not exists (select 1 from public.requests x where x.id = draft);
      -- a save that was overtaken by the sending
      select * into r from public.requests x where x.submit_key = (input ->> 'key')::uuid and x.user_id = uid and x.status <> 'draft';
      if found then perform private.fail_decided(r, null); end if;
    end if;
  end if;
  if draft is not null and not named then
    r := private.require_draft(draft);
  else
    if (select count(*) from public.requests x where x.user_id = uid and x.status = 'draft') >= 50 then
      perform private.fail(409, 'too_many_drafts', 'You have 50 saved drafts. Please delete one first.');
    end if;
    insert into public.requests (id, user_id) values (coalesce(draft, gen_random_uuid()::text), uid) returning * into r;
  end if;
  perform private.write_answers(private.apply_answers(r, input));
  return (select jsonb_build_object('id', x.id, 'updated_at', x.updated_at) from public.requests x where x.id = r.id);
end $$;

alter function public.submit_request(jsonb) rename to send_request;
alter function public.send_request(jsonb) set schema private;
revoke all on function private.send_request(jsonb) from public, anon, authenticated, service_role;

-- Sends a request. One that names no draft takes the caller's draft of the same key, if there is one.
create function public.submit_request(input jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare draft text;
begin
  if private.clean(input ->> 'draft_id') is null then
    draft := private.named_draft(auth.uid(), input ->> 'key');
    if draft is not null then
      perform pg_advisory_xact_lock(hashtextextended('draft:' || draft, 0));
      if exists (select 1 from public.requests x where x.id = draft and x.user_id = auth.uid() and x.status = 'draft') then
        return private.send_request(input || jsonb_build_object('draft_id', draft));
      end if;
    end if;
  end if;
  return private.send_request(input);
end $$;

-- Pages replace a picture and take the one before away; whoever only adds is stopped here. Runs where a file lands (see 0024).
create function private.check_picture_folder() returns trigger
language plpgsql security definer set search_path = '' as $$
declare folder text := split_part(new.name, '/', 1) || '/';
begin
  if nullif(current_setting('storage.detected_mimetype', true), '') is null then return new; end if;
  perform pg_advisory_xact_lock(hashtextextended('pictures:' || new.bucket_id || ':' || folder, 0));
  if (select count(*) from storage.objects o where o.bucket_id = new.bucket_id and starts_with(o.name collate "C", folder)) >= 10 then
    perform private.fail(409, 'too_many_pictures', 'There are 10 pictures already. Please remove one first.', '{"max": 10}');
  end if;
  return new;
end $$;
create trigger check_picture_folder before insert on storage.objects
  for each row when (new.bucket_id in ('profile-photos', 'logos')) execute function private.check_picture_folder();

revoke all on function private.named_draft(uuid, text), private.check_picture_folder() from public, anon, authenticated, service_role;
revoke all on function public.submit_request(jsonb) from public;
grant execute on function public.submit_request(jsonb) to anon, authenticated, service_role;

notify pgrst, 'reload schema';
