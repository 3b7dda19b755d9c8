-- Every bucket × verb × person, and which files are accepted as documents.
begin;
select tests.start();
select tests.cast_of_people();
update private.app_settings set value = '1000' where key = 'rate_limit_factor';

-- files
do $$
begin
  perform tests.matrix('select * from storage.objects where bucket_id = ''request-documents'' and name = ''r-ax/a.pdf''', '{"alice": "rows=1", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''request-documents'', ''r-draft/b.pdf'')', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''request-documents'', ''r-ax/b.pdf'')', '{}', 'refused');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''request-documents'', ''guest/b.pdf'')', '{}', 'refused');
  perform tests.matrix('update storage.objects set name = ''r-ax/c.pdf'' where bucket_id = ''request-documents'' and name = ''r-ax/a.pdf''', '{}', 'rows=0', 'rows=0');
end $$;
do $$
begin
  perform set_config('storage.allow_delete_query', 'true', true);
  perform tests.matrix('delete from storage.objects where bucket_id = ''request-documents'' and name = ''r-ax/a.pdf''', '{}', 'rows=0', 'rows=0');
  perform tests.matrix('delete from storage.objects where bucket_id = ''request-documents'' and name = ''r-draft/new.pdf''', '{"alice": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('select * from storage.objects where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('alice') || '/%'),
    '{"alice": "rows=1", "employee": "rows=1", "manager": "rows=1", "admin": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('select * from storage.objects where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('bob') || '/%'),
    '{"bob": "rows=1", "manager_y": "rows=1", "admin_y": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''profile-photos'', ' || quote_literal(tests.id('alice') || '/2.png') || ')', '{"alice": "rows=1"}', 'refused');
  perform tests.matrix('delete from storage.objects where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('alice') || '/%'), '{"alice": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('insert into storage.objects (bucket_id, name) values (''logos'', ''x/2.png'')', '{"admin": "rows=1"}', 'refused');
  perform tests.matrix('select * from storage.objects where bucket_id = ''logos''', '{"admin": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('update storage.objects set metadata = ''{"size": 1}'' where bucket_id = ''logos''', '{"admin": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('update storage.objects set metadata = ''{"size": 1}'' where bucket_id = ''profile-photos'' and name like ' || quote_literal(tests.id('alice') || '/%'),
    '{"alice": "rows=1"}', 'rows=0', 'rows=0');
  perform tests.matrix('delete from storage.objects where bucket_id = ''logos'' and name = ''x/logo.png''', '{"admin": "rows=1"}', 'rows=0', 'rows=0');
end $$;

-- Statements of the storage server: a user's file is stored; a multipart upload begins, by TUS or by S3.
create function tests.lands(name text, who text) returns text language sql as $$
  select format('insert into storage.objects (bucket_id, name, owner_id, version, metadata) values (''request-documents'', %L, %L, ''v'', ''{"mimetype": "application/pdf", "size": 9}'')',
    name, tests.id(who))
$$;
create function tests.begins(protocol text, name text, who text, bucket text default 'request-documents') returns text language sql as $$
  select case protocol
    when 'tus' then format('insert into _supavisor.resumable_uploads (id, bucket_id, key, owner_id, size, expires_at) values (gen_random_uuid(), %L, %L, %L, 9, now() + interval ''1 hour'')',
      bucket, name, tests.id(who))
    else format('insert into storage.s3_multipart_uploads (id, upload_signature, bucket_id, key, version, owner_id) values (gen_random_uuid(), '''', %L, %L, ''v'', %L)',
      bucket, name, tests.id(who)) end
$$;

-- A stored file is checked by its bytes. The storage server passes their type in a setting of the writing transaction.
do $$
declare
  docx constant text := 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  k text := gen_random_uuid(); s jsonb; f record; slot text; protocol text;
begin
  for f in select * from (values
    ('request-documents', 'r-draft/l.pdf', 'application/pdf', 'application/pdf', 9, 'rows=1'),
    ('request-documents', 'r-draft/l.docx', docx, docx, 10485760, 'rows=1'),
    ('request-documents', 'r-draft/l.jpg', 'image/jpg; q=1', 'image/jpeg', 9, 'rows=1'),
    ('request-documents', 'r-draft/l.pdf', 'application/pdf', 'application/octet-stream', 9, 'hint:file_type'),
    ('request-documents', 'r-draft/l.pdf', 'application/pdf', 'image/png', 9, 'hint:file_type'),
    ('request-documents', 'r-draft/l.docx', docx, 'application/zip', 9, 'hint:file_type'),
    ('request-documents', 'r-draft/l.pdf', 'application/pdf', 'application/pdf', 10485761, 'hint:file_too_large'),
    ('request-documents', 'r-draft/l.pdf', 'application/pdf', 'application/pdf', 0, 'hint:file_empty'),
    ('request-documents', 'guest/nobody.pdf', 'application/pdf', 'application/pdf', 9, 'hint:slot_gone'),
    ('profile-photos', 'a/me.heic', 'image/heif', 'image/heic', 9, 'rows=1'),
    ('profile-photos', 'a/me.png', 'image/png', 'application/octet-stream', 9, 'hint:file_type'),
    ('logos', 'x/l.png', 'image/png', 'image/png', 5242880, 'rows=1'),
    ('logos', 'x/l.png', 'image/png', 'image/png', 5242881, 'hint:file_too_large'),
    ('logos', 'x/l.png', 'image/png', 'image/webp', 9, 'hint:file_type')) t (bucket, name, declared, seen, size, outcome)
  loop
    perform set_config('storage.detected_mimetype', f.seen, true);
    perform tests.check('service', format('insert into storage.objects (bucket_id, name, version, metadata) values (%L, %L, ''v'', %L)', f.bucket, f.name,
      jsonb_build_object('mimetype', f.declared, 'size', f.size)), f.outcome);
  end loop;
  -- A guest's file must match its slot; the stored size is the actual one.
  s := tests.act('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''fee letter.pdf'', ''application/pdf'', 9)');
  slot := format('insert into storage.objects (bucket_id, name, version, metadata) values (''request-documents'', %L, ''v'', ', s ->> 'path');
  -- A picture folder holds ten files, whoever owns it. Another user's folder being full does not matter.
  perform set_config('storage.detected_mimetype', 'image/png', true);
  for n in 1..10 loop
    insert into storage.objects (bucket_id, name, version, metadata) values ('logos', 'full/' || n || '.png', 'v', '{"mimetype": "image/png", "size": 9}');
  end loop;
  perform tests.check('service', 'insert into storage.objects (bucket_id, name, version, metadata) values (''logos'', ''full/11.png'', ''v'', ''{"mimetype": "image/png", "size": 9}'')', 'hint:too_many_pictures');
  perform tests.check('service', 'insert into storage.objects (bucket_id, name, version, metadata) values (''logos'', ''full-not/1.png'', ''v'', ''{"mimetype": "image/png", "size": 9}'')', 'rows=1');
  perform tests.check('service', 'insert into storage.objects (bucket_id, name, version, metadata) values (''profile-photos'', ''full/1.png'', ''v'', ''{"mimetype": "image/png", "size": 9}'')', 'rows=1');
  perform set_config('storage.detected_mimetype', 'image/png', true);
  perform tests.check('service', slot || '''{"mimetype": "image/png", "size": 9}'')', 'hint:file_type');
  perform tests.same('the message names the file', substring(current_setting('tests.last_error') from 7), 'fee letter.pdf is not an accepted file type.');
  perform set_config('storage.detected_mimetype', 'application/pdf', true);
  perform tests.check('service', slot || '''{"mimetype": "application/pdf", "size": 10485761}'')', 'hint:file_too_large');
  perform tests.same('and so does the other', substring(current_setting('tests.last_error') from 7), 'fee letter.pdf exceeds the maximum file size of 10MB.');
  execute slot || '''{"mimetype": "application/pdf", "size": 4321}'')';
  perform tests.same('its size', (select size_bytes from private.guest_upload_slots where id::text = s ->> 'id'), 4321::bigint);
  -- Files in drafts count where they are stored, whoever owns the existing ones.
  insert into public.requests (id, user_id, category_id, description)
  select 'r-q' || n, tests.id('alice'), 't-cat', 'half' from generate_series(1, 3) n;
  insert into storage.objects (bucket_id, name, version, metadata)
  select 'request-documents', 'r-q' || n % 3 + 1 || '/' || n || '.pdf', 'v', '{"mimetype": "application/pdf", "size": 9}' from generate_series(1, 58) n;
  perform tests.same('Alice has room for one more', (select count(*)::int from storage.objects where bucket_id = 'request-documents' and name ~ '^r-(q|draft)'), 59);
  perform tests.check('service', tests.lands('r-draft/q60.pdf', 'alice'), 'rows=1');
  -- Uploads in progress count, by TUS and by S3, but not against themselves.
  execute tests.begins('tus', 'r-draft/q60.pdf', 'alice');
  perform tests.check('service', tests.lands('r-draft/q60.pdf', 'alice'), 'rows=1');
  perform tests.check('service', tests.lands('r-draft/q61.pdf', 'alice'), 'hint:too_many_files');
  foreach protocol in array array['tus', 's3'] loop
    perform tests.check('service', tests.begins(protocol, 'r-draft/q61.pdf', 'alice'), 'hint:too_many_files');
    perform tests.check('service', tests.begins(protocol, 'r-bob/1.pdf', 'bob'), 'rows=1');
  end loop;
  update _supavisor.resumable_uploads set finished_at = now();
  perform tests.check('service', tests.begins('s3', 'r-draft/q61.pdf', 'alice'), 'rows=1');
  -- and thirty in one request's folder
  for n in 1..10 loop
    execute tests.begins('tus', 'r-bob/' || n || '.pdf', 'bob');
    execute tests.begins('s3', 'r-bob/' || n || '.pdf', 'bob');
  end loop;
  insert into storage.objects (bucket_id, name, version, metadata)
  select 'request-documents', 'r-bob/' || n || '.docx', 'v', '{"mimetype": "application/pdf", "size": 9}' from generate_series(1, 9) n;
  perform tests.check('service', tests.lands('r-bob/30.pdf', 'bob'), 'rows=1');
  execute tests.begins('tus', 'r-bob/30.pdf', 'bob');
  perform tests.check('service', tests.lands('r-bob/30.pdf', 'bob'), 'rows=1');
  perform tests.check('service', tests.lands('r-bob/31.pdf', 'bob'), 'hint:too_many_files');
  perform tests.check('service', tests.begins('tus', 'r-bob/31.pdf', 'bob'), 'hint:too_many_files');
  perform tests.check('service', tests.begins('s3', 'r-bob2/1.pdf', 'bob'), 'rows=1');
  -- A guest's slot allows three attempts at once.
  for n in 1..3 loop
    execute tests.begins('tus', 'guest/tried.pdf', null);
  end loop;
  perform tests.check('service', tests.begins('tus', 'guest/tried.pdf', null), 'hint:too_many_files');
  perform tests.check('service', tests.begins('tus', 'guest/other.pdf', null), 'rows=1');
  -- Pictures being uploaded fill their folder as well.
  for n in 1..4 loop
    execute tests.begins('tus', 'p/' || n || '.png', 'bob', 'profile-photos');
    execute tests.begins('s3', 'p/' || n || '.png', 'bob', 'profile-photos');
  end loop;
  perform set_config('storage.detected_mimetype', 'image/png', true);
  insert into storage.objects (bucket_id, name, version, metadata)
  select 'profile-photos', 'p/' || n || '.jpg', 'v', '{"mimetype": "image/png", "size": 9}' from generate_series(1, 2) n;
  foreach protocol in array array['tus', 's3'] loop
    perform tests.check('service', tests.begins(protocol, 'p/11.png', 'bob', 'profile-photos'), 'hint:too_many_pictures');
    perform tests.check('service', tests.begins(protocol, 'q/11.png', 'bob', 'profile-photos'), 'rows=1');
  end loop;
  perform set_config('storage.detected_mimetype', 'application/pdf', true);
  -- An unfinished S3 upload expires after a day.
  update storage.s3_multipart_uploads set created_at = now() - interval '25 hours' where key like 'p/%';
  perform public.sweep_guest_files();
  perform tests.same('uploads of S3 that are left', (select string_agg(distinct split_part(key, '/', 1), ' ') from storage.s3_multipart_uploads), 'r-bob');
  -- A file without a document's row expires after six hours, even if its request exists.
  insert into storage.objects (bucket_id, name, version, metadata, created_at) values
    ('request-documents', 'r-draft/old.pdf', 'v', '{"mimetype": "application/pdf", "size": 9}', now() - interval '7 hours'),
    ('request-documents', 'r-draft/young.pdf', 'v', '{"mimetype": "application/pdf", "size": 9}', now() - interval '5 hours');
  perform tests.same('swept', (select array_agg(x order by x)::text from public.sweep_guest_files() x where x like 'r-draft/%'), '{r-draft/old.pdf}');
  update private.guest_upload_slots set expires_at = now();
  perform tests.check('service', slot || '''{"mimetype": "application/pdf", "size": 9}'')', 'hint:slot_gone');
  -- A document's row gets type and size from the file, whatever its sender writes.
  insert into storage.objects (bucket_id, name, version, metadata) values ('request-documents', 'r-draft/real.pdf', 'v', '{"mimetype": "application/pdf", "size": 77}');
  perform set_config('storage.detected_mimetype', '', true);
  perform tests.run('alice', 'insert into public.request_documents (request_id, name, path, mime_type, size_bytes) values (''r-draft'', ''real.pdf'', ''r-draft/real.pdf'', ''image/png'', 5)');
  perform tests.same('type and size', (select mime_type || ' ' || size_bytes from public.request_documents where path = 'r-draft/real.pdf'), 'application/pdf 77');
  perform tests.check('bob', 'select private.own_document_facts(''r-draft/real.pdf'') where private.own_document_facts(''r-draft/real.pdf'') is not null', 'rows=0');
  perform tests.same('the server is asked to sweep every hour', (select count(*)::int from ferrobase.hourly where function = 'public.sweep_guest_files'), 1);
end $$;

select tests.same('buckets without a check', tests.missing_checks(array['select', 'insert', 'update', 'delete'], (select array_agg('bucket:' || b.id) from storage.buckets b)), '');

select tests.count() as checks;
rollback;
