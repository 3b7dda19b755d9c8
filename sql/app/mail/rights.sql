-- The auth API's hook for its mails.
grant usage on schema private to supabase_auth_admin;
grant execute on function private.sign_in_mail(jsonb) to supabase_auth_admin;
