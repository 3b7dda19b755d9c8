-- Extensions that every project of Supabase begins with, where our own PostgreSQL has them, and what Supabase grants when
-- one is made. An extension that a project makes belongs to it; its objects belong to the platform.
do $$
begin
  if current_user <> 'supabase_admin' then
    return;
  end if;
  begin
    create extension if not exists supabase_vault;
  exception when undefined_file or feature_not_supported or insufficient_privilege then
    raise warning 'extension supabase_vault is not available here';
  end;
end $$;
