-- Triggers: see functions.sql. Those of a table fire in the order of their names.

create or replace trigger normalise before insert or update on public.user_roles
  for each row execute function private.normalise_user_role();

create or replace trigger touch before update on public.profiles for each row execute function private.touch();

create or replace trigger touch before update on public.profile_identities for each row execute function private.touch();

create or replace trigger guard before insert or update on public.profiles for each row execute function private.guard_profile();

create or replace trigger aidbridge_account_created after insert on auth.users
  for each row execute function private.on_account_created();
create or replace trigger aidbridge_account_changed after update of email, raw_user_meta_data on auth.users
  for each row execute function private.on_account_changed();
create or replace trigger aidbridge_keep_from_provider before update of raw_user_meta_data on auth.users
  for each row execute function private.keep_from_provider();
create or replace trigger aidbridge_provider_answered after insert or update of identity_data on auth.identities
  for each row when (new.provider not in ('email', 'phone')) execute function private.on_provider_answered();
create or replace trigger aidbridge_account_deleted before delete on auth.users
  for each row execute function private.on_account_deleted();
create or replace trigger aidbridge_account_deleted_drafts before delete on auth.users
  for each row execute function private.on_account_deleted_drafts();

create or replace trigger guard before insert or update on public.profile_identities for each row execute function private.guard_identity();

create or replace trigger text_consent before update of sms_consent on public.profiles
  for each row execute function private.on_text_consent();
create or replace trigger text_consent_follows after update of sms_consent on public.profiles
  for each row when (new.sms_consent is distinct from old.sms_consent) execute function private.follow_text_consent();
create or replace trigger aidbridge_text_stopped after insert on _supavisor.sms_stopped
  for each row execute function private.on_text_stopped();

create or replace trigger clean_names before insert or update of full_name, first_name, middle_name, last_name on public.profiles
  for each row execute function private.clean_names('full_name', 'first_name', 'middle_name', 'last_name');
create or replace trigger one_name before update of full_name, first_name, last_name on public.profiles
  for each row execute function private.one_name();
create or replace trigger lock_account before update of full_name, first_name, last_name, phone on public.profiles
  for each statement execute function private.lock_account();
create or replace trigger tell_account after update of full_name, first_name, last_name, phone on public.profiles
  for each row when (pg_trigger_depth() = 0 and (new.full_name is distinct from old.full_name or new.phone is distinct from old.phone))
  execute function private.tell_account();
