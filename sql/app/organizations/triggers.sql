-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger guard before insert or update on public.nonprofits for each row execute function private.guard_nonprofit();
create or replace trigger created after insert on public.nonprofits for each row execute function private.on_nonprofit_created();

create or replace trigger guard before insert or update on public.nonprofit_team_members
  for each row execute function private.guard_team_member();
create or replace trigger hold_organization_of_admin before delete on public.nonprofit_team_members
  for each row when (old.role = 'admin') execute function private.hold_organization_of_admin();
create or replace trigger keep_an_admin after update or delete on public.nonprofit_team_members
  for each row execute function private.keep_an_admin();
create or replace trigger role_changed after update of role on public.nonprofit_team_members
  for each row when (new.role <> old.role and new.user_id <> 'pending') execute function private.on_team_role_changed();

create or replace trigger guard before insert or update on public.categories for each row execute function private.guard_category();

create or replace trigger touch before update on public.nonprofit_settings for each row execute function private.touch();

create or replace trigger invite after insert on public.nonprofit_team_members
  for each row when (new.user_id = 'pending' and new.invited_at is null) execute function private.on_team_member_added();

-- Runs before the guards, because triggers run in the order of their names.
create or replace trigger clean_names before insert or update of name on public.nonprofits
  for each row execute function private.clean_names('name');
