-- Takes the schema of the contract tests out of a database again. The bucket `compat` is empty after a run; delete it through the API.

begin;
drop policy "compat: own folder" on storage.objects;
drop policy reads on realtime.messages;
drop policy writes on realtime.messages;
drop function public.announce(text, text), functions."compat-echo"(jsonb), public.compat_leave(text), public.compat_fill(text),
  public.compat_refuse(), public.compat_touch(), public.compat_books_of(text), public.compat_whoami(), public.compat_add(integer, integer);
drop table public.live_notes, public.compat_notes, public.compat_books, public.compat_authors;
delete from supabase_migrations.schema_migrations where version in ('20260101000000', '20260102000000', '20260103000000');
commit;
