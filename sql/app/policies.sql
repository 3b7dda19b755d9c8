-- Row level security. Every policy is dropped here and created again in its subject's policies.sql, so that these files
-- are complete. On storage.objects, ours are those named after a bucket.

do $$
declare p record; bad text;
begin
  for p in select d.polname, d.polrelid::regclass as on_table from pg_policy d join pg_class c on c.oid = d.polrelid
    join pg_namespace n on n.oid = c.relnamespace
    where (n.nspname in ('public', 'private') and pg_get_userbyid(c.relowner) = current_user)
      or (d.polrelid = 'storage.objects'::regclass and split_part(d.polname, ': ', 1) in ('documents', 'photos', 'logos'))
  loop
    execute format('drop policy %I on %s', p.polname, p.on_table);
  end loop;

  select string_agg(c.oid::regclass::text, ', ') into bad from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('public', 'private') and c.relkind in ('r', 'p') and not c.relrowsecurity and pg_get_userbyid(c.relowner) = current_user;
  if bad is not null then raise exception 'no row level security on %', bad; end if;
end $$;

-- service_role bypasses row level security as on Supabase. If it cannot have BYPASSRLS, these policies replace it.
do $$
declare t regclass;
begin
  for t in select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind = 'r' and pg_get_userbyid(c.relowner) = current_user and c.oid <> 'public.profile_identities'::regclass
  loop
    execute format('create policy "service role" on %s to service_role using (true) with check (true)', t);
  end loop;
end $$;
