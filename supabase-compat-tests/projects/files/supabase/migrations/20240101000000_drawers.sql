create policy "people use their drawer" on storage.objects for all to authenticated
  using (bucket_id = 'drawers' and (storage.foldername(name))[1] = (select auth.uid()::text))
  with check (bucket_id = 'drawers' and (storage.foldername(name))[1] = (select auth.uid()::text));
