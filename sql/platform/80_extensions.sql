-- Extensions that every Supabase project has, if the embedded PostgreSQL has them, and Supabase's grants for new ones.
-- An extension created by a project belongs to it; its objects belong to the platform.
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
