-- Every bucket × verb × person, and what makes a file a document.
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

-- what landed is judged by its bytes: the storage server names their type in a setting of the writing transaction
do $$
declare
  docx constant text := 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  k text := gen_random_uuid(); s jsonb; f record; slot text;
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
  -- a guest's file must be what its place was made for; the size kept is the one that arrived
  s := tests.act('anon', 'select public.create_guest_upload_slot(' || quote_literal(k) || ', ''fee letter.pdf'', ''application/pdf'', 9)');
  slot := format('insert into storage.objects (bucket_id, name, version, metadata) values (''request-documents'', %L, ''v'', ', s ->> 'path');
  -- a folder of pictures takes ten, whoever's it is; another's is not full by that
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
  -- a person's files in drafts are counted where they land, whoever's name is on those that are there
  for n in 1..60 loop
    insert into storage.objects (bucket_id, name, version, metadata)
    values ('request-documents', 'r-draft/q' || n || '.pdf', 'v', '{"mimetype": "application/pdf", "size": 9}');
  end loop;
  perform tests.check('service', format('insert into storage.objects (bucket_id, name, owner_id, version, metadata) values (''request-documents'', ''r-draft/q61.pdf'', %L, ''v'', ''{"mimetype": "application/pdf", "size": 9}'')', tests.id('alice')), 'hint:too_many_files');
  perform tests.check('service', format('insert into storage.objects (bucket_id, name, owner_id, version, metadata) values (''request-documents'', ''r-draft/q61.pdf'', %L, ''v'', ''{"mimetype": "application/pdf", "size": 9}'')', tests.id('bob')), 'rows=1');
  -- without a document's row a file has six hours, though its request is there
  insert into storage.objects (bucket_id, name, version, metadata, created_at) values
    ('request-documents', 'r-draft/old.pdf', 'v', '{"mimetype": "application/pdf", "size": 9}', now() - interval '7 hours'),
    ('request-documents', 'r-draft/young.pdf', 'v', '{"mimetype": "application/pdf", "size": 9}', now() - interval '5 hours');
  perform tests.same('swept', (select array_agg(x order by x)::text from public.sweep_guest_files() x where x like 'r-draft/%'), '{r-draft/old.pdf}');
  update private.guest_upload_slots set expires_at = now();
  perform tests.check('service', slot || '''{"mimetype": "application/pdf", "size": 9}'')', 'hint:slot_gone');
  -- a document's row tells type and size of the file, whatever its sender writes
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
